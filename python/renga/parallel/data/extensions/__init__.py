"""Extensions of a trainer that all ranks run together."""
