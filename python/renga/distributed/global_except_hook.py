"""ChainerMN's module that ends the whole job after an uncaught exception.

renga does so from the first communicator of processes on, without importing it.
"""
