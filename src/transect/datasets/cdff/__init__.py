"""CDFF, the Common Data Fusion Framework: the logs of its robots, and the calibrations of its data.

- `msgpack`: logs of CDFF's own data packs (MessagePack), written, too
- `pocolog`: raw logs of Rock, from which these were made
- `rock`: what both have in common: types, times, columns, streams
- `calibration_files`: text calibrations beside its images; `calibration_dialects` tells them apart
"""
