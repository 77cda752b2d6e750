"""Generated posts, vectorised: columns of random numbers become lines of JSON without a loop over posts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import count

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from ...recordings.batch import Batch
from .draw import Alias, zipf
from .load import Load, Surge
from .vocabulary import N_AUTHORS, N_TAGS, authors, phrases, tags

_TAGS_A_POST = np.array([0.34, 0.36, 0.18, 0.08, 0.04])  # shares of posts with 0 … 4 tags


@dataclass(frozen=True)
class Generated:
    """A load's posts in slices: `posts` messages, or `seconds` of stream, or endless.

    The same load gives the same bytes in every run.

    >>> first = next(Generated(Load(rate=1000, seed=1)).batches())
    >>> first.values[0].as_py()[:11]
    b'{"id":"p1.0'
    >>> first.values.equals(next(Generated(Load(rate=1000, seed=1)).batches()).values)
    True
    """

    load: Load
    posts: int | None = None
    seconds: float | None = None

    def batches(self) -> Iterator[Batch]:
        """Yield the posts in order of arrival."""
        made = 0
        for number in count():
            batch = one_slice(self.load, number)
            stop = len(batch)
            if self.seconds is not None:
                stop = int(np.searchsorted(batch.due, self.seconds))
            if self.posts is not None:
                stop = min(stop, self.posts - made)
            yield batch.slice(0, stop)
            made += stop
            over = self.seconds is not None and (number + 1) * self.load.slice_seconds >= self.seconds
            if over or made == self.posts:
                return


def one_slice(load: Load, number: int) -> Batch:
    """Make slice `number` of the stream, independent of other slices."""
    rng = load.random(2, number)
    begin = number * load.slice_seconds
    middle = begin + load.slice_seconds / 2
    n = int(rng.poisson(load.rate_at(middle) * load.slice_seconds))
    due = begin + np.sort(rng.random(n)) * load.slice_seconds
    author = (N_AUTHORS * rng.random(n) ** 2.5).astype(
        np.int64
    )  # a few authors write a lot, many write little
    tag = _tags(load, rng, n)
    phrase = _phrases().draw(rng, n)
    retweet = np.zeros(n, np.uint32)
    for burst, rows in _swept_up(load, rng, middle, n):
        tag[0, rows] = burst.tag + 1
        if burst.flood:
            retweet[rows] = 1
            author[rows] = burst.first_author + rng.integers(0, burst.n_authors, len(rows))
            tag[1:, rows] = 0
            phrase[rows] = burst.tag % 8
    _only_once(tag)
    clock = _clocks(load, rng, due, author)
    row, due = _repeat_some(load, rng, due)
    author = author[row]
    lines = _lines(f"p{load.seed}.{number}.", row, author, tag[:, row], phrase[row], retweet[row], clock[row])
    sent = (load.start.timestamp() * 1000 + due * 1000).astype(np.int64)
    return Batch(_malform(load, rng, lines), author.astype(np.uint32), sent, due)


def _tags(load: Load, rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw the numbers of each post's tags, shape (4, n); 0 stands for none."""
    drawn = _popularity(load.zipf).draw(rng, 4 * n).reshape(4, n)
    # The ranks of tags depend on the seed, or the same words would trend in every run.
    drawn = _ranks(load)[drawn] + 1
    count = np.searchsorted(np.cumsum(_TAGS_A_POST)[:-1], rng.random(n), side="right")
    drawn *= np.arange(4)[:, None] < count
    return drawn


def _swept_up(load: Load, rng: np.random.Generator, t: float, n: int) -> Iterator[tuple[Surge, np.ndarray]]:
    """Select the rows of a slice that belong to each burst active at time `t`."""
    active = load.bursts(t)
    weights = np.array([1.0, *(burst.weight(t) for burst in active)])
    cause = np.searchsorted(np.cumsum(weights / weights.sum())[:-1], rng.random(n), side="right")
    for place, burst in enumerate(active, 1):
        yield burst, np.flatnonzero(cause == place)


def _only_once(tag: np.ndarray) -> None:
    """Remove repeated tags of a post."""
    for later in range(1, 4):
        for earlier in range(later):
            tag[later][tag[later] == tag[earlier]] = 0


def _clocks(load: Load, rng: np.random.Generator, due: np.ndarray, author: np.ndarray) -> np.ndarray:
    """Return the authors' clock times (ms since the epoch): before the arrival by a delay, plus a skew."""
    delay = rng.exponential(0.2, len(due))
    slow = rng.random(len(due))
    delay[slow < 0.1] *= 8
    delay[slow < load.late] += 60 + 240 * rng.random(int((slow < load.late).sum()))
    # One author in fifty has a wrong clock, always by the same amount, up to 1.5 s either way.
    off = (author * 2_654_435_761) % 1_000_003
    skew = np.where(off % 50 == 0, (off / 1_000_003 - 0.5) * 3.0, 0.0)
    return (load.start.timestamp() * 1000 + (due - delay + skew) * 1000).astype(np.int64)


def _repeat_some(load: Load, rng: np.random.Generator, due: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each message's post and due time; some posts are sent again a little later."""
    again = np.flatnonzero(rng.random(len(due)) < load.duplicates)
    if not len(again):
        return np.arange(len(due)), due
    later = np.minimum(due[again] + rng.exponential(0.05, len(again)), due[-1])
    row = np.concatenate([np.arange(len(due)), again])
    all_due = np.concatenate([due, later])
    order = np.argsort(all_due, kind="stable")
    return row[order], all_due[order]


def _lines(
    prefix: str,
    row: np.ndarray,
    author: np.ndarray,
    tag: np.ndarray,
    phrase: np.ndarray,
    retweet: np.ndarray,
    clock: np.ndarray,
) -> pa.LargeBinaryArray:
    words = _words()
    stamp = pl.from_epoch(pl.Series(clock), time_unit="ms").dt.strftime("%Y-%m-%dT%H:%M:%S.%3fZ")
    lines = pl.select(
        pl.concat_str(
            pl.lit(f'{{"id":"{prefix}'),
            pl.Series(row).cast(pl.String),
            pl.lit('","kind":"post","author":"'),
            words["author"].gather(author),
            pl.lit('","created_at":"'),
            stamp,
            pl.lit('","lang":"'),
            words["language"].gather(phrase),
            pl.lit('","tags":['),
            words["first tag"].gather(tag[0]),
            *(words["further tag"].gather(tag[place]) for place in (1, 2, 3)),
            pl.lit('],"text":"'),
            words["retweet"].gather(retweet),
            words["text"].gather(phrase),
            *(words["hashtag"].gather(tag[place]) for place in (0, 1, 2, 3)),
            pl.lit('"}'),
        )
    )
    return lines.to_series().cast(pl.Binary).to_arrow().cast(pa.large_binary())


def _malform(load: Load, rng: np.random.Generator, lines: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """Break some lines like faulty senders: truncated, plain text, bytes that are not text."""
    broken = rng.random(len(lines)) < load.malformed
    if not broken.any():
        return lines
    rows = np.flatnonzero(broken)
    kind = rng.integers(0, 3, len(rows))
    cut = [lines[int(row)].as_py()[:40] for row in rows]
    replacement = [(line, b"503 Service Unavailable", b"\xff\xfe" + line)[k] for line, k in zip(cut, kind)]
    return pc.replace_with_mask(lines, pa.array(broken), pa.array(replacement, pa.large_binary()))


@lru_cache(maxsize=4)
def _popularity(exponent: float) -> Alias:
    return zipf(N_TAGS, exponent)


@lru_cache(maxsize=1)
def _phrases() -> Alias:
    return Alias.of(phrases()[2])


@lru_cache(maxsize=4)
def _ranks(load: Load) -> np.ndarray:
    """Return the tag at each rank: the well-known words come first, in an order specific to the load."""
    rng = load.random(0)
    return np.concatenate([rng.permutation(64), 64 + rng.permutation(N_TAGS - 64)])


@lru_cache(maxsize=1)
def _words() -> dict[str, pl.Series]:
    """Return all pieces from which a line is built; row 0 of the tags stands for none."""
    languages, texts, _ = phrases()
    return {
        "author": pl.Series(authors()),
        "language": pl.Series(languages),
        "text": pl.Series(texts),
        "retweet": pl.Series(["", "RT: "]),
        "first tag": pl.Series(["", *(f'"{tag}"' for tag in tags())]),
        "further tag": pl.Series(["", *(f',"{tag}"' for tag in tags())]),
        "hashtag": pl.Series(["", *(f" #{tag}" for tag in tags())]),
    }
