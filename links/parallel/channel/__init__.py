"""Links whose channels are shared out over ranks."""
