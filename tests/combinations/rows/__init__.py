"""The features of models and training, by subject."""

from tests.combinations.row import Row
from tests.combinations.rows import batches, models, parameters, resuming, training

SUBJECTS = (models, parameters, training, batches, resuming)


def rows_of(module):
    """A row for each class of a module that has a name."""
    found = [each for each in vars(module).values() if isinstance(each, type)]
    own = [each for each in found if each.__module__ == module.__name__]
    return [each() for each in own if issubclass(each, Row) and each.name]


ROWS = [row for module in SUBJECTS for row in rows_of(module)]
