"""An exception that nobody catches ends the whole job.

So it is from the first communicator of processes on; scripts import this module to ask
for it, and need not.
"""
