"""A simulated survey; the docs show its report."""

from __future__ import annotations

import numpy as np
import pandas as pd

__all__ = ["make_survey"]

REGIONS = ["north", "east", "south", "west", "islands"]
SCHOOLS = ["primary", "secondary", "vocational", "university"]


def make_survey(
    n_population: int = 60_000, n_sample: int = 1_500, *, seed: int = 0
) -> tuple[pd.DataFrame, pd.Series, pd.DataFrame]:
    """Return the respondents, their spending, and the population.

    Older people, the well-off and graduates respond more often; nobody on the islands was asked.
    """
    random = np.random.default_rng(seed)
    age = np.clip(random.gamma(9, 5.2, n_population), 18, 95).round()
    region = random.choice(REGIONS, n_population, p=[0.31, 0.26, 0.225, 0.185, 0.02])
    school = random.choice(SCHOOLS, n_population, p=[0.15, 0.35, 0.20, 0.30])
    graduate = school == "university"
    income = np.exp(random.normal(10.3, 0.42, n_population) + 0.004 * (age - 47) + 0.2 * graduate)
    online = random.normal(30 - 0.25 * age, 6, n_population).clip(0).round(1)
    online[random.uniform(size=n_population) < 0.06] = np.nan
    people = pd.DataFrame(
        {
            "age": age,
            "income": income.round(-1),
            "region": region,
            "education": school,
            "household size": np.minimum(1 + random.poisson(1.3, n_population), 7),
            "years at address": (random.gamma(1.5, 4, n_population) + 0.12 * (age - 18)).round(1),
            "hours online": online,
            "owns home": random.uniform(size=n_population) < 1 / (1 + np.exp(-(age - 45) / 15)),
            "distance to town": random.exponential(12, n_population).round(1),
            "visits a year": random.poisson(3, n_population),
        }
    )
    lean = 0.045 * (age - 55) + 1.1 * (np.log(income) - 10.5) + 0.35 * graduate
    chance = np.where(region == "islands", 0.0, 1 / (1 + np.exp(-lean)))
    answered = random.choice(n_population, n_sample, replace=False, p=chance / chance.sum())
    sample = people.iloc[answered].reset_index(drop=True)
    noise = random.normal(0, 900, n_sample)
    spending = 0.25 * sample["income"] + 60 * sample["age"] + 900 * graduate[answered] + noise
    return sample, spending.rename("spending"), people
