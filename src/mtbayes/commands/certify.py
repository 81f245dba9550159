"""`mtbayes certify`: what the risk on new rows does not exceed, in a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mtbayes.commands import options
from mtbayes.commands.outputs import new_file
from mtbayes.commands.screen import Screen, open_share
from mtbayes.errors import InvalidInput


def certify(
    model: options.ModelFile,
    data: options.Data,
    confidence: Annotated[float, typer.Option(help="How sure the bound is.")] = 0.95,
    out: Annotated[Path | None, options.out("Keep the model that is certified here.")] = None,
    seed: options.Seed = 0,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Bound the risk on new rows, as dirty as those of a file.

    Half of the rows teach a prior, the other half bound a model that starts from it, with the
    settings of MODEL. The sentence is about that model, which --out keeps, and not about MODEL.

    Example: mtbayes certify houses.mtb houses.csv --out certified.mtb
    """
    with Screen(quiet=quiet, as_json=as_json, debug=debug) as screen:
        open_share(confidence, "confidence", "0.95 is the default.")
        if out is not None:
            new_file(out, force)
        from mtbayes.commands.learning import opened, rows_of
        from mtbayes.tables.model import TableModel

        learned = TableModel.load(model)
        rows = rows_of(screen, opened(screen, data), learned.schema)
        if len(rows.y) < 2:
            raise InvalidInput(
                "the file must have at least 2 rows with a target, one to learn from and one to "
                f"bound by, got {len(rows.y)}. Add rows."
            )
        estimator = learned.estimator.set_params(random_state=seed, verbose=int(screen.bars))
        bound = estimator.certify(rows.x, rows.y, confidence=confidence)
        screen.note(
            "the sentence takes the coding of columns as given: where MODEL was fitted to these "
            "rows, their medians and levels were seen, and that is not paid for"
        )
        own, bounded = (e.fitted_.learner for e in (learned.estimator, bound.predictor))
        if own.name != bounded.name:
            screen.note(
                f"the sentence is about {bounded.words}, learned for it; MODEL is {own.words}, of "
                "which no such bound is known"
            )
        screen.line(str(bound))
        if out is not None:
            TableModel(bound.predictor, learned.schema).save(out)
            screen.line(f"The certified model: {out}")
        screen.done({"value": bound.value, "statement": bound.statement, "terms": bound.terms})
