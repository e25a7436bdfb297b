"""Campaigns that look for what breaks: new hypothesis examples, mutated files, commands killed halfway.

``python -m tools.fuzz --seconds 600 mutations rosbag`` (`make fuzz`). The tests run a small sample of each;
what a campaign finds is written as a file that becomes a fixed case of the tests.
"""
