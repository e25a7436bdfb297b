"""Simulated field days: worlds with exact ground truth, recorded in the real formats, and fault injection.

A world (`datasets/<name>/world`) generates a `Day`: a `Recording` in the format of its robot, and the `Truth`
that no real recording has. Truth comes from the state of the world. Worlds share constants with the models of
their robots, but never call the functions that are evaluated with simulated data.

- `day`: `Day`, `Truth`, `WorldOptions`, `simulate`, `write_day`
- `motion`: the exact pose and rates of a body at any time
- `randomness`: generators that depend on the seed, the stream and the sample only

Conventions: the world is x east, y north, z up in metres; a body is x forward, y left, z up. A format's own
axes are used only where its streams are generated.
"""
