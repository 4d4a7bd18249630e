from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.stats import norm
from tests.r_random import RRandom
from tests.references import reference

from unskew import HeckmanRegressor

SELECTION = ["nwifeinc", "educ", "exper", "exper2", "age", "kids5", "kids618"]
OUTCOME = ["educ", "exper", "exper2"]

# Wooldridge, example 17.5, by R's sampleSelection 1.2-12: estimate and standard error of each.
TWO_STEP = {
    ("selection", "(constant)"): (0.270076769896, 0.508593035079),
    ("selection", "nwifeinc"): (-0.012023738934, 0.004839838277),
    ("selection", "educ"): (0.130904731621, 0.025254195673),
    ("selection", "exper"): (0.123347593071, 0.018716401497),
    ("selection", "exper2"): (-0.001887080182, 0.000599986368),
    ("selection", "age"): (-0.052852671447, 0.008477239639),
    ("selection", "kids5"): (-0.868328502648, 0.118522310791),
    ("selection", "kids618"): (0.036004957259, 0.043476787535),
    ("outcome", "(constant)"): (-0.578103187638, 0.305006200510),
    ("outcome", "educ"): (0.109065520186, 0.015522954573),
    ("outcome", "exper"): (0.043887339479, 0.016261056936),
    ("outcome", "exper2"): (-0.000859114222, 0.000438916125),
    ("errors", "λ"): (0.032261864122, 0.133624642387),
}
ML = {
    ("selection", "(constant)"): (0.266449072943, 0.508957801165),
    ("selection", "nwifeinc"): (-0.012132144564, 0.004876704584),
    ("selection", "educ"): (0.131341449435, 0.025382305799),
    ("selection", "exper"): (0.123281837736, 0.018724193854),
    ("selection", "exper2"): (-0.001886252575, 0.000600387906),
    ("selection", "age"): (-0.052828685708, 0.008479178401),
    ("selection", "kids5"): (-0.867398738663, 0.118650947117),
    ("selection", "kids618"): (0.035872350927, 0.043475299326),
    ("outcome", "(constant)"): (-0.552696290787, 0.260378516220),
    ("outcome", "educ"): (0.108350190705, 0.014860705775),
    ("outcome", "exper"): (0.042836820624, 0.014878540971),
    ("outcome", "exper2"): (-0.000837425863, 0.000417467743),
    ("errors", "σ"): (0.663397571720, 0.022707498339),
    ("errors", "ρ"): (0.026606968508, 0.147077939915),
}


@pytest.fixture(scope="module")
def mroz():
    data = reference("mroz87")
    works = data.lfp == 1
    log_wage = np.log(data.wage.where(works))  # missing for those who do not work
    kids = (data.kids5 + data.kids618 > 0).astype(float)
    return data.assign(exper2=data.exper**2, age2=data.age**2, kids=kids, log_wage=log_wage)


def fitted(data, selection, outcome, y="log_wage", **options):
    return HeckmanRegressor(selection, outcome, **options).fit(data, data[y])


def check(summary, expected, rel):
    for place, (estimate, error) in expected.items():
        row = summary[place]
        assert row.estimate == pytest.approx(estimate, rel=rel), place
        assert row.standard_error == pytest.approx(error, rel=rel), place


class TestPrintedResults:
    def test_wooldridge_two_step(self, mroz):
        model = fitted(mroz, SELECTION, OUTCOME)
        check(model.summary(), TWO_STEP, 5e-7)
        assert model.sigma_ == pytest.approx(0.663628748401, rel=5e-7)
        assert model.rho_ == pytest.approx(0.048614325705, rel=5e-7)
        assert model.log_likelihood_ == pytest.approx(-401.302193175, rel=1e-9)

    def test_wooldridge_maximum_likelihood(self, mroz):
        model = fitted(mroz, SELECTION, OUTCOME, method="ml")
        check(model.summary(), ML, 5e-7)
        assert model.log_likelihood_ == pytest.approx(-832.885080764, rel=1e-11)
        assert model.certificate_.converged
        assert model.certificate_.gradient < 1e-8

    def test_greene_two_step(self, mroz):
        """Greene (2003), example 22.8, as sampleSelection's tests print it."""
        works = mroz.assign(wage=mroz.wage.where(mroz.lfp == 1))
        selection = ["age", "age2", "faminc", "kids", "educ"]
        outcome = ["exper", "exper2", "educ", "city"]
        model = fitted(works, selection, outcome, y="wage")
        printed = {
            ("outcome", "(constant)"): (-0.9712003, 2.0593505),
            ("outcome", "exper"): (0.0210610, 0.0624646),
            ("outcome", "educ"): (0.4170174, 0.1002497),
            ("outcome", "city"): (0.4438379, 0.3158984),
            ("errors", "λ"): (-1.097619, 1.26599),
        }
        check(model.summary(), printed, 4e-6)
        check(model.summary(), {("selection", "kids"): (-0.4490, 0.1309)}, 4e-4)
        assert model.sigma_ == pytest.approx(3.200, abs=5e-4)
        assert model.rho_ == pytest.approx(-0.343, abs=5e-4)
        # Its maximum likelihood by BHHH stopped at −1581.259 without reaching the maximum.
        best = fitted(works, selection, outcome, y="wage", method="ml")
        assert -1581.259 < best.log_likelihood_ < -1581.25
        assert best.coef_[2] == pytest.approx(0.4562471, rel=2e-3)

    @pytest.mark.parametrize(
        "selection", [["age", "educ", "kids", "mtr"], ["age", "kids5", "educ"]]
    )
    def test_other_specifications_by_another_solver(self, mroz, selection):
        """Against SciPy on the likelihood in σ and ρ themselves, written out a second time."""
        z, x = (sm - sm.mean() for sm in (mroz[selection], mroz[["educ", "exper"]]))
        z, x = z / z.std(), x / x.std()
        data = pd.concat([z.add_prefix("z_"), x.add_prefix("x_")], axis=1)
        model = HeckmanRegressor(list(data.columns[: z.shape[1]]), list(data.columns[-2:]))
        model = model.set_params(method="ml").fit(data, mroz.log_wage)
        seen = mroz.log_wage.notna().to_numpy()
        k = z.shape[1] + 1

        def loss(p):
            sigma, rho = p[-2:]
            if sigma <= 0 or abs(rho) >= 1:
                return np.inf
            index = p[0] + z.to_numpy() @ p[1:k]
            error = (mroz.log_wage - p[k] - x.to_numpy() @ p[k + 1 : -2])[seen] / sigma
            inner = (index[seen] + rho * error) / np.sqrt(1 - rho**2)
            rest = norm.logcdf(-index[~seen]).sum()
            return -(rest + (norm.logcdf(inner) + norm.logpdf(error) - np.log(sigma)).sum())

        start = np.append(model.params_[:-2] * 0.9, [0.7, -0.3])
        found = minimize(loss, start, method="BFGS", options={"gtol": 1e-6})
        np.testing.assert_allclose(found.x[:-2], model.params_[:-2], atol=2e-4)
        np.testing.assert_allclose(found.x[-2:], [model.sigma_, model.rho_], atol=2e-4)
        assert model.log_likelihood_ == pytest.approx(-found.fun, abs=1e-6)

    def test_the_vignette_of_sampleselection(self):
        """Its first example, from R's own random numbers (vignettes/selection.pdf)."""
        random = RRandom(0)
        errors = random.pairs(500, -0.7)
        xs = random.runif(500)
        seen = xs + errors[:, 0] > 0
        xo = random.runif(500)
        assert seen.sum() == 328
        frame = pd.DataFrame({"xs": xs, "xo": xo})
        y = np.where(seen, xo + errors[:, 1], np.nan)
        model = HeckmanRegressor(["xs"], ["xo"], method="ml").fit(frame, y)
        printed = {
            ("selection", "(constant)"): (-0.2228, 0.1081, 5e-5),
            ("selection", "xs"): (1.3377, 0.2014, 5e-5),
            ("outcome", "(constant)"): (-0.0002265, 0.1294178, 5e-8),
            ("outcome", "xo"): (0.7299070, 0.1635925, 5e-8),
            ("errors", "σ"): (0.9190, 0.0574, 5e-5),
            ("errors", "ρ"): (-0.5392, 0.1521, 5e-5),
        }
        for place, (estimate, error, half_digit) in printed.items():
            row = model.summary()[place]
            assert row.estimate == pytest.approx(estimate, abs=2 * half_digit), place
            assert row.standard_error == pytest.approx(error, abs=2 * half_digit), place
        assert model.log_likelihood_ == pytest.approx(-712.3163, abs=5e-5)
