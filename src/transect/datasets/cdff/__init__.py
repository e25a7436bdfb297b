"""CDFF, the Common Data Fusion Framework: the logs of its robots, and the calibrations of its data.

- `msgpack`: MessagePack logs of CDFF's data packs, read and written
- `pocolog`: raw logs of Rock, from which these were converted
- `rock`: types, times, columns and streams of both
- `calibration_files`: text calibrations of its images; `calibration_dialects` recognises them
"""
