"""Bags: files of messages on topics, as ROS 1, ROS 2 and MCAP keep them.

`bag_file` is the interface of the containers `ros1`, `sqlite`, `mcap`. `topics` gathers messages of a topic
from several files, `streams` makes a recording of topics. `ros_types`, `ros_decoder`, `ros_messages` and
`ros_payloads` decode messages of ROS, `json_messages` those in JSON.
"""

ROS1_MAGIC, SQLITE_MAGIC, MCAP_MAGIC = b"#ROSBAG V2.0\n", b"SQLite format 3\x00", b"\x89MCAP0\r\n"
