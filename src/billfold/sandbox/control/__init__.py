"""The control of a running sandbox: tasks that concern the whole bank, run by the process that started it; and faults.

Owns the tasks (fork, rewind, reset, play a scenario), one at a time, and the socket over which the servers of the
sandbox request them; and the faults that requests and deliveries meet.
"""
