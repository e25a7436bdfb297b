"""Simulated field days: worlds with exact truth, recorded in the real formats, and faults on purpose.

A world (`worlds/<name>`) makes a `Day`: a `Recording` as the robot of a document would have made it, and
the `Truth` that no real recording has. Truth is taken from the state of the world; constants are shared with
`robots/`, functions that are judged by simulated data are not.

- `day`: `Day`, `Truth`, `Options`, `simulate`, `write_day`
- `motion`: where a body is, exactly, at any time
- `randomness`: generators that depend on the seed, the stream and the sample alone
- `worlds`: etna (AMEDS), rosario, marulan (SDI), insight (IDA)

Everywhere: the world is x east, y north, z up in metres; a body is x forward, y left, z up. A format's own
axes appear where its streams are made, and nowhere else.
"""
