"""Extensions that record, print and plot observations."""
