"""The error of an additive model is found in cells that have it, and moderated by what is usual."""

from __future__ import annotations

import numpy as np
import pytest

from ciphercost.estimate import model_error


@pytest.mark.parametrize("tau", [0.0, 0.1, 0.3])
def test_the_scatter_of_many_cells_is_found(tau: float) -> None:
    random = np.random.default_rng(3)
    design = np.column_stack([np.ones(200), random.uniform(0, 100, 200)])
    truth = design @ [5.0, 0.4]
    errors = 0.03 * truth
    values = truth * (1 + random.normal(0, tau, 200)) + random.normal(0, errors)
    assert model_error.scatter(design, values, errors) == pytest.approx(tau, abs=0.035)


def test_cells_that_the_fit_needs_all_show_none() -> None:
    assert model_error.scatter(np.eye(3), np.array([1.0, 5.0, 9.0]), np.full(3, 0.1)) == 0
    assert model_error.moderated(0.0, 0) == model_error.moderated(None, 2) == (model_error.USUAL, model_error.SERVERS)


def test_few_cells_move_it_a_little_and_many_decide() -> None:
    few, many = model_error.moderated(0.6, 2)[0], model_error.moderated(0.6, 500)[0]
    assert model_error.USUAL < few < 0.4
    assert many == pytest.approx(0.6, rel=0.01)


def test_differences_from_predictions_beyond_their_errors() -> None:
    random = np.random.default_rng(4)
    errors = np.full(300, 0.1)
    assert model_error.pooled(list(random.normal(0, np.hypot(0.2, errors))), list(errors)) == pytest.approx(
        0.2, abs=0.03
    )
    assert model_error.pooled([0.05, -0.05], [0.1, 0.1]) == 0
