"""The loop ends where its kernel does, and makes the room it needs."""

from streamgauge.sketches.core.resume import DONE, NO_ROOM, resume


def test_goes_on_where_it_stopped_until_all_is_done():
    collected: list[tuple[int, int]] = []
    room = [0]

    def step(at):
        collected.append((at, room[0]))
        return (10, DONE) if room[0] >= 10 else (room[0], NO_ROOM)

    def enlarge(why):
        room[0] += 4

    assert resume(step, enlarge) == (10, DONE)
    assert collected == [(0, 0), (0, 4), (4, 8), (8, 12)]


def test_a_fault_ends_it_at_its_row():
    assert resume(lambda at: (3, 7), lambda why: None) == (3, 7)


def test_each_lack_is_reported_to_the_caller_that_enlarges():
    answers = [((1, 0), NO_ROOM), ((1, 5), -2), ((2, 0), DONE)]
    lacks: list[int] = []
    assert resume(lambda at: answers.pop(0), lacks.append, at=(0, 0)) == ((2, 0), DONE)
    assert lacks == [NO_ROOM, -2]
