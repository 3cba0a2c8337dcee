"""Calls of links, and the hooks around them."""

import pytest

from renga import Chain, Link, LinkHook


class Times(Link):
    """Multiplies its arguments and counts its calls."""

    calls = 0

    def forward(self, x, times=1):
        self.calls += 1
        return x * times


class Notes(LinkHook):
    """Records its calls in a list shared with other hooks."""

    def __init__(self, name, notes):
        self.name = name
        self.notes = notes

    def added(self, link):
        self.notes.append((self.name, "added", link))

    def deleted(self, link):
        self.notes.append((self.name, "deleted", link))

    def forward_preprocess(self, args):
        self.notes.append((self.name, "pre", args.link))
        assert args.forward_name == "forward"

    def forward_postprocess(self, args):
        self.notes.append((self.name, "post", args.link))
        assert args.out == 6
        assert args.kwargs == {"times": 2}
        assert args.args == (3,)


def test_hooks_around_a_call():
    link, notes = Times(), []
    local = Notes("local", notes)
    assert link.add_hook(local) is link
    with Notes("everywhere", notes):
        link(3, times=2)
    link.delete_hook("local")
    link(3, times=2)
    assert notes == [
        ("local", "added", link),
        ("everywhere", "added", None),
        ("everywhere", "pre", link),
        ("local", "pre", link),
        ("everywhere", "post", link),
        ("local", "post", link),
        ("everywhere", "deleted", None),
        ("local", "deleted", link),
    ]
    assert link.calls == 2


def test_hook_errors():
    link = Times()
    link.add_hook(Notes("a", []))
    with pytest.raises(KeyError, match="already exists"):
        link.add_hook(Notes("b", []), "a")
    with pytest.raises(KeyError, match="expected the name of a hook"):
        link.delete_hook("b")
    with pytest.raises(TypeError, match="LinkHook"):
        link.add_hook(3)
    with Notes("a", []), pytest.raises(KeyError, match="already exists"):
        Notes("a", []).__enter__()
    assert list(link.local_link_hooks) == ["a"]


def test_call_without_forward():
    with pytest.raises(AttributeError, match="forward"):
        Chain()()


def test_forward_replaced_on_one_instance():
    link = Times()
    link.forward = lambda x: x + 1
    assert link(1) == 2
