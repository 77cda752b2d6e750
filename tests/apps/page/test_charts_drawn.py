"""The page's charts in Chromium: gray where no series has rows, and a mark for a point that stands alone."""

from __future__ import annotations

from typing import Any

import pytest

from .drawn import Tab

MINUTE = 60
DRAWN = """
const [series, options] = arguments;
const file = document.querySelector('script[type=module]').src.replace('main.js', 'chart.js');
return import(file).then(async ({ TimeChart, colour, css }) => {
  const chart = new TimeChart(200);
  document.body.prepend(chart.node);
  const grays = [];
  const { fillRect } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillRect = function (...box) {
    const gray = document.createElement('canvas').getContext('2d');
    gray.fillStyle = css('--gap');
    if (this.fillStyle === gray.fillStyle) grays.push(box[2]);
    return fillRect.apply(this, box);
  };
  const full = ([time, value, partial]) => ({ time, value, lower: value, upper: value, partial });
  const named = series.map((points, number) => (
    { name: `s${number}`, number, colour: colour(number), points: points.map(full) }
  ));
  chart.draw(named, { title: 'Chart', unit: '', ...options });
  await new Promise((done) => setTimeout(done, 100));
  CanvasRenderingContext2D.prototype.fillRect = fillRect;
  const { bbox, ctx } = chart.plot;
  const place = (value, axis) => Math.round(chart.plot.valToPos(value, axis, true));
  const marked = series.map((points, number) => points.map(([time, value]) => {
    const [red, green, blue] = ctx.getImageData(place(time, 'x'), place(value, 'y'), 1, 1).data;
    return colour(number) === `rgb(${red}, ${green}, ${blue})`;
  }));
  chart.node.remove();
  chart.drop();
  return [grays.map((one) => one / bbox.width), marked];
});
"""


@pytest.fixture
def tab(browser: Any, site: str) -> Tab:
    return Tab(browser, site).open("/app/yard")


def drawn(tab: Tab, series: list[Any], step: int | None) -> tuple[list[float], list[list[bool]]]:
    """The widths of gray areas as shares of the chart, and which points have a mark of their colour."""
    shares, marked = tab.run(DRAWN, series, {"step": step})
    return shares, marked


@pytest.mark.parametrize("later", [0, 0.1])
def test_sensors_that_report_at_the_same_time_leave_no_gap(tab: Tab, later: float) -> None:
    times = [number * MINUTE for number in range(60) if not 20 <= number < 40]
    series = [[[at, 20.0] for at in times], [[at + later, 30.0] for at in times]]
    (share,), _ = drawn(tab, series, None)
    assert share == pytest.approx(21 / 59, abs=0.01), "the 20 minutes without readings of either"


def test_a_point_that_stands_alone_has_a_mark(tab: Tab) -> None:
    whole = [[number * MINUTE, 20.0, False] for number in range(300)]
    between = [[MINUTE * number, 5.0, False] for number in (*range(100), 150, *range(200, 300))]
    newest = [[299 * MINUTE, 30.0, True]]
    after_a_gap = [[0, 40.0, False], [299 * MINUTE, 40.0, True]]
    _, marked = drawn(tab, [whole, between, newest, after_a_gap], MINUTE)
    assert marked[1][100] and marked[2] == [True] and marked[3] == [True, True]
