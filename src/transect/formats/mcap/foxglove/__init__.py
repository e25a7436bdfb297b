"""Foxglove's schemas in MCAP files: what they are, what of a recording goes into which, and back.

Messages are written in protobuf, the encoding that Foxglove itself prefers: JSON has no NaN (Foxglove shows a
null range as one of 0 m) and makes a third more bytes of every cloud and image. Both are read.
"""
