"""Simulated field days: worlds with exact truth, recorded in the real formats, and faults on purpose.

A world (`datasets/<name>/world`) makes a `Day`: a `Recording` as its robot would have made it, and the
`Truth` that no real recording has. Truth comes from the state of the world. Worlds share constants with the
models of their robots, but never call the functions that are judged by simulated data.

- `day`: `Day`, `Truth`, `Options`, `simulate`, `write_day`
- `motion`: where a body is, exactly, at any time
- `randomness`: generators that depend on the seed, the stream and the sample alone

Everywhere: the world is x east, y north, z up in metres; a body is x forward, y left, z up. A format's own
axes appear where its streams are made, and nowhere else.
"""
