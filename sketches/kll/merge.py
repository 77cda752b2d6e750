"""Merge KLL sketches, like datasketches-java's `KllDoublesHelper.mergeDoubleImpl`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core.compilation.jit import allocating, kernel, lean
from ..core.hashing.bits import prefetch_image
from ..core.resume import DONE, NO_ROOM
from ..core.sorting.sort import merge_apart, sort
from .compaction import MAX_N, MORE_LEVELS, OTHER, TOO_MANY, flatten_sampler, move, promote
from .images import body, header, ordered
from .levels import MAX_DEPTH
from .update import absorb, fill, widen
from .weighted import N, absorb_levels, put_back, take_apart

_NEVER_COARSER = 127


class Given(NamedTuple):
    """Images of sketches of one k, concatenated in `data`, and the capacity of a sketch of each depth."""

    data: np.ndarray
    offsets: np.ndarray
    k: int
    total: np.ndarray


@allocating
def _merge_one(state, below_top, total, deepest, leaps, g, items, levels, n, low, high, min_k, done):
    """Merge a sketch into group `g`; `levels` bounds the levels within `items`, sorted above level 0.

    `done` is the number of level 0 items that an interrupted call has added; returns (the new `done`, how it
    ended). The scratch must have room for all items of both.
    """
    depth = len(levels) - 1
    before = state.n[g] - done
    if n > MAX_N - before:
        return done, TOO_MANY
    if depth == 1:  # it has every value, so they are added as values
        widen(state, g, low, high)
        end, added = absorb(state, below_top, total, deepest, leaps, g, items[levels[0] + done : levels[1]])
        return done + added, end
    end = flatten_sampler(state, total, g)
    if end != DONE:
        return done, end
    widen(state, g, low, high)
    # Level 0 is added as values of weight 1; then levels are merged pairwise, for which both need grain 0.
    zero = items[levels[0] + done : levels[1]]
    while len(zero):
        end, added = fill(state, below_top, total, _NEVER_COARSER, g, zero)
        done += added
        zero = zero[added:]
        if end != DONE:
            return done, end
    end = _merge_upper(state, below_top, total, g, items, levels, before + n)
    if end != DONE:
        return done, end
    state.min_k[g] = min(state.min_k[g], min_k)
    state.n[g] = before + n
    return done, DONE


@lean
def check_images(given, read, at):
    """Return how many images from `at` on are valid and of ``given.k``, and their number of values."""
    seen = 0.0
    for i in range(at, len(given.offsets) - 1):
        prefetch_image(given.data, given.offsets, i + 1)
        image = given.data[given.offsets[i] : given.offsets[i + 1]]
        fault, k, n, _, depth, updatable = header(image, read.width)
        if fault or k != given.k:
            return i - at, seen
        if n > 0:
            if body(image, n, depth, updatable, given.total[depth], read) or not ordered(read, depth):
                return i - at, seen
            seen += n
    return len(given.offsets) - 1 - at, seen


@lean
def merge_exact(state, below_top, total, deepest, leaps, groups, given, read, at):
    """Merge images like `merge_images`, but end with OTHER at one of several levels or for a deep group.

    If there are many groups, most of their sketches have one level, and a kernel without reference counts is
    faster.
    """
    i, done = at
    while i < len(groups):
        prefetch_image(given.data, given.offsets, i + 1)
        g = groups[i]
        image = given.data[given.offsets[i] : given.offsets[i + 1]]
        _, own_k, n, _, depth, updatable = header(image, read.width)
        deep = leaps[state.depth[g]] or state.grain[g] or state.depth[g] >= deepest
        if own_k != given.k or depth > 1 or (deep and done == 0):
            return (i, done), OTHER
        if n > 0:
            body(image, n, depth, updatable, given.total[depth], read)
            if n > MAX_N - (state.n[g] - done):
                return (i, done), TOO_MANY
            widen(state, g, read.edges[0], read.edges[1])
            items = read.items[read.levels[0] + done : read.levels[1]]
            why, added = absorb(state, below_top, total, deepest, leaps, g, items)
            if why != DONE:
                return (i, done + added), why
        i, done = i + 1, np.int64(0)
    return (i, done), DONE


@kernel
def merge_images(state, below_top, total, deepest, leaps, groups, given, read, apart, at, until):
    """Merge images into their groups, as a step of `resume`, from `at` on: (an image's number, how many of
    its level 0 items an interrupted call has added). Ends before image number `until`, or with OTHER at an
    image that is not of ``given.k``, of which nothing was counted. `check_images` has validated all images
    before.
    """
    i, done = at
    why, laid_apart = DONE, np.int64(-1)
    while i < min(len(groups), until):
        prefetch_image(given.data, given.offsets, i + 1)
        g = groups[i]
        image = given.data[given.offsets[i] : given.offsets[i + 1]]
        _, own_k, n, min_k, depth, updatable = header(image, read.width)
        if own_k != given.k:
            why = OTHER
            break
        if n > 0:
            body(image, n, depth, updatable, given.total[depth], read)
            own, edges = read.levels[: depth + 1], read.edges
            if g != laid_apart:
                # The levels stay apart while images of the same group follow each other.
                if laid_apart >= 0:
                    put_back(state, total, leaps, laid_apart, apart)
                    laid_apart = np.int64(-1)
                if done == 0 and (leaps[state.depth[g]] or state.grain[g] or state.depth[g] >= deepest):
                    why = take_apart(state, total, deepest, g, apart)
                    if why != DONE:
                        break
                    laid_apart = g
            if laid_apart >= 0:
                if n > MAX_N - apart.figures[N]:
                    why = TOO_MANY
                    break
                widen(state, g, edges[0], edges[1])
                absorb_levels(apart, below_top, total, deepest, leaps, read.items, own, n, state.high[g])
                if depth > 1:
                    state.min_k[g] = min(state.min_k[g], min_k)
            else:
                done, why = _merge_one(
                    state, below_top, total, deepest, leaps, g,
                    read.items, own, n, edges[0], edges[1], min_k, done,
                )  # fmt: skip
                if why != DONE:
                    break
        i, done = i + 1, np.int64(0)
    if laid_apart >= 0:
        put_back(state, total, leaps, laid_apart, apart)
    return (i, done), why


@allocating
def _merge_upper(state, below_top, total, g, items, levels, n):
    own_depth, depth = np.int64(state.depth[g]), len(levels) - 1
    deepest: Any = max(own_depth, depth)
    most = deepest
    while most <= MAX_DEPTH and (np.int64(1) << most) <= n:
        most += 1
    if most + 2 > state.levels.shape[1]:
        return MORE_LEVELS
    if state.extent[0].used + total[most] > len(state.items):
        state.extent[0].wanted = total[most]
        return NO_ROOM
    own = state.items[state.start[g] : state.start[g] + state.room[g]]
    own_levels = state.levels[g]
    retained = own_levels[own_depth] - own_levels[0]
    work = np.empty(retained + levels[depth] - levels[1], items.dtype)
    bounds = np.zeros(most + 2, np.int64)
    bounds[1] = own_levels[1] - own_levels[0]
    work[: bounds[1]] = own[own_levels[0] : own_levels[1]]
    for h in range(1, deepest):
        mine = own[own_levels[h] : own_levels[h + 1]] if h < own_depth else own[:0]
        other = items[levels[h] : levels[h + 1]] if h < depth else items[:0]
        bounds[h + 1] = bounds[h] + len(mine) + len(other)
        merge_apart(mine, other, work[bounds[h] : bounds[h + 1]], state.high[g], state.scratch)
    final, out = compress(state, below_top, total, g, work, bounds, deepest)
    room = total[final]
    if room != state.room[g]:
        state.room[g] = 0
        state.depth[g] = 0
        state.levels[g, 0] = 0
        move(state, g, room)
    free = room - (out[final] - out[0])
    region = state.items[state.start[g] : state.start[g] + room]
    region[free:] = work[out[0] : out[final]]
    for h in range(final + 1):
        state.levels[g, h] = out[h] - out[0] + free
    state.depth[g] = final
    return DONE


@allocating
def compress(state, below_top, total, g, work, bounds, depth):
    """Compact levels of `work`, bottom up, until their items fit a sketch; return its depth and bounds."""
    count = bounds[depth] - bounds[0]
    target = total[depth]
    out = np.zeros(len(bounds), np.int64)
    coin = state.coin[g : g + 1]
    # Bottom up: items that a level passes to the next are counted before that level is checked.
    level = 0
    while level < depth:
        if level == depth - 1:
            bounds[level + 2] = bounds[level + 1]
        begin, end = bounds[level], bounds[level + 1]
        to = out[level]
        if count < target or end - begin < below_top[depth - 1 - level]:
            for i in range(end - begin):
                work[to + i] = work[begin + i]
            out[level + 1] = to + end - begin
        else:
            odd = (end - begin) & 1
            if odd:
                work[to] = work[begin]
            out[level + 1] = to + odd
            if level == 0:
                sort(work[begin + odd : end], state.scratch, state.high[g])
            half = promote(work, begin + odd, end, bounds[level + 2], coin, state.scratch, state.high[g])
            count -= half
            bounds[level + 1] -= half
            if level == depth - 1:
                depth += 1
                target = total[depth]
        level += 1
    return depth, out
