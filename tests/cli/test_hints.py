"""What a command says where people stumble, and that following its advice helps."""

from __future__ import annotations

import re
import shlex

import numpy as np
import pandas as pd
import pytest

from unskew import Population
from unskew import diagnose as unskew_diagnose

ROLES = ("--target", "spend", "--id", "customer")


def weigh(*more, sample="answers.csv", population="people.parquet"):
    return ("weigh", sample, population, *more, "-o", "w.csv")


@pytest.fixture
def two_causes(tmp_path, monkeypatch):
    """A folder with a sample selected by two columns, of which the label depends on one."""
    random = np.random.default_rng(1)
    people = pd.DataFrame({f"x{k}": random.normal(size=4000) for k in range(3)})
    takes_part = random.uniform(size=4000) < 0.3 / (1 + np.exp(-people["x0"] - 1.2 * people["x1"]))
    people.to_parquet(tmp_path / "people.parquet")
    people[takes_part].assign(spend=people["x0"]).to_csv(tmp_path / "answers.csv", index=False)
    monkeypatch.chdir(tmp_path)


class TestVerdict:
    def test_it_is_the_diagnosis_of_the_same_weights_and_comes_last(self, unskew, survey):
        weighed = unskew(*weigh(*ROLES))
        assert weighed.code == 0, weighed.err
        judged = unskew("diagnose", "answers.csv", "people.parquet", *ROLES, "--weights", "w.csv")
        *_, written, verdict = weighed.out.splitlines()
        assert verdict == judged.out.splitlines()[0]
        assert written == "Written: w.csv"

    def test_the_next_step_helps(self, unskew, two_causes):
        weighed = unskew(*weigh("--target", "spend", "--method", "tree"))
        *_, verdict, step = weighed.out.splitlines()
        assert verdict == "The weights do not remove the bias."
        assert "or --method auto or --method rake: still different are x1 by 0." in step
        better = unskew(*weigh("--target", "spend"))
        assert better.out.splitlines()[-1].startswith("The weights correct the bias")
        labels = unskew(*weigh("--exclude", "spend"))
        assert labels.out.splitlines()[-1] == better.out.splitlines()[-1]

    def test_the_population_is_read_once_also_with_a_report(self, unskew, survey, monkeypatch):
        passes, read = [], Population._pass

        def counted(self, *asked):
            passes.append(asked)
            return read(self, *asked)

        monkeypatch.setattr(Population, "_pass", counted)
        result = unskew(*weigh(*ROLES, "--report", "r.html", "--method", "kmm"))
        assert result.code == 0, result.err
        assert len(passes) == 1

    @pytest.mark.parametrize("option", ["--no-verdict", "--quiet"])
    def test_it_can_be_left_out(self, unskew, survey, monkeypatch, option):
        monkeypatch.setattr("unskew.diagnose", lambda *_, **__: pytest.fail("it was judged"))
        result = unskew(*weigh(*ROLES, option))
        assert result.code == 0, result.err
        assert result.out.splitlines()[-1:] == (["Written: w.csv"] if option != "--quiet" else [])

    def test_weights_that_cannot_be_judged_are_written(self, unskew, survey, answers, people):
        answers.assign(age=np.linspace(1, 2, len(answers))).to_csv("answers.csv", index=False)
        age = np.linspace(1, 2, len(people))
        people.assign(age=np.where(age < 2, age, 1e300)).to_parquet("people.parquet")
        result = unskew(*weigh(*ROLES, "--method", "histogram", "--set", "buckets=2"))
        assert result.code == 0, result.err
        assert "note: The weights could not be judged. Column 'age'" in result.err
        assert len(pd.read_csv("w.csv")) == len(answers)


class TestRefusals:
    def test_too_many_buckets_are_named_and_fewer_are_accepted(self, unskew, survey):
        arguments = weigh(*ROLES, "--method", "histogram", "--set", "buckets=9")
        result = unskew(*arguments)
        assert result.code == 3
        assert "the columns make 243 cells, of which the 333 sample rows occupy" in result.err
        found = re.search(r"Try (--set buckets=\d) or --method tree", result.err)
        assert found, result.err
        assert unskew(*arguments, *shlex.split(found[1])).code == 0

    def test_a_sample_that_lacks_people_is_told_so_however_many_buckets(
        self, unskew, survey, people
    ):
        people.assign(town=people["town"].replace("Kiel", "Rome")).to_parquet("people.parquet")
        result = unskew(*weigh(*ROLES, "--method", "histogram", "--set", "buckets=9"))
        assert result.code == 3
        assert "town = Rome" in result.err
        assert "the weights cannot make the sample represent it" in result.err

    def test_distinct_points(self, unskew, survey):
        result = unskew(*weigh(*ROLES, "--method", "frequency"))
        assert result.code == 3
        assert "333 sample rows are 333 distinct points" in result.err
        assert "Try --method tree" in result.err

    def test_identifiers_and_free_text(self, unskew, survey, answers, people):
        for name, rows in (("answers.csv", answers), ("people.csv", people)):
            rows.assign(
                key=[f"{name[0]}{row}" for row in range(len(rows))],
                note=[f"the {name[0]} who came number {row} or so" * 9 for row in range(len(rows))],
            ).to_csv(name, index=False)
        result = unskew(*weigh(*ROLES, population="people.csv"))
        assert result.code == 3
        assert "leave them out with --exclude key,note" in result.err
        assert max(map(len, result.err.splitlines())) < 1500
        result = unskew(*weigh(*ROLES, "--exclude", "key,note", population="people.csv"))
        assert result.code == 0, result.err


class TestColumnNames:
    @pytest.mark.parametrize(
        ("arguments", "meant"),
        [
            (("--target", "Spend"), "spend"),
            (("--target", "spend", "--id", "custmer"), "customer"),
            ((*ROLES, "--exclude", "twon"), "town"),
            ((*ROLES, "--columns", "age,In come"), "income"),
            ((*ROLES, "--sample-weight", "AGE"), "age"),
            ((*ROLES, "--population-weight", "Income"), "income"),
        ],
    )
    def test_did_you_mean(self, unskew, survey, arguments, meant):
        result = unskew(*weigh(*arguments))
        assert result.code == 2
        assert f"Did you mean '{meant}'?" in result.err

    def test_a_column_under_another_name_in_the_population(self, unskew, survey, people):
        people.rename(columns={"age": "Age"}).to_parquet("people.parquet")
        result = unskew(*weigh(*ROLES))
        assert result.code == 2
        assert "lacks column 'age'" in result.err
        assert "Did you mean 'Age'?" in result.err

    def test_new_rows_and_parameters(self, unskew, survey, answers):
        assert unskew(*weigh(*ROLES, "--save", "w.skops")).code == 0
        answers.rename(columns={"income": "Income"}).to_csv("new.csv", index=False)
        result = unskew("apply", "w.skops", "new.csv", "-o", "again.csv")
        assert result.code == 2
        assert "'new.csv' lacks column 'income'" in result.err
        assert "Did you mean 'Income'?" in result.err
        assert "Did you mean max_weight?" in unskew(*weigh(*ROLES, "--set", "max_weigth=3")).err


class TestSwapped:
    def test_the_corrected_command_works(self, unskew, survey):
        arguments = weigh(*ROLES, sample="people.parquet", population="answers.csv")
        result = unskew(*arguments)
        assert result.code == 2
        assert "SAMPLE and POPULATION seem to be swapped" in result.err
        command = result.err.partition("SAMPLE comes first: ")[2]
        assert shlex.split(command) == ["unskew", *weigh(*ROLES)]
        assert unskew(*shlex.split(command)[1:]).code == 0

    def test_a_smaller_population_with_the_label_is_noted(self, unskew, survey, answers, people):
        everyone = people.assign(spend=np.where(np.arange(len(people)) < 400, 1.0, np.nan))
        everyone.to_csv("everyone.csv", index=False)
        swapped = weigh("--target", "spend", "--unlabelled", "drop",
                        sample="everyone.csv", population="answers.csv")  # fmt: skip
        result = unskew(*swapped, "--allow-uncovered", "1")
        assert result.code == 0, result.err
        assert "'answers.csv' has the target 'spend' and fewer rows" in result.err
        assert "unskew weigh answers.csv everyone.csv --target spend" in result.err


class TestUnlabelled:
    @pytest.fixture
    def loans(self, survey, people):
        """Accepted loans have a label, rejected ones do not."""
        accepted = np.random.default_rng(0).uniform(size=len(people)) < 0.1
        rows = people.assign(spend=people["age"].where(accepted)).reset_index(names="loan")
        rows.to_csv("loans.csv", index=False)
        return rows

    def test_it_is_refused_with_the_option_and_the_number(self, unskew, loans):
        result = unskew(*weigh("--target", "spend", sample="loans.csv"))
        assert result.code == 2
        labelled = loans["spend"].notna().sum()
        assert f"'spend' is missing in {4000 - labelled:,} of 4,000 rows" in result.err
        assert f"--unlabelled drop uses only the {labelled} rows" in result.err

    @pytest.mark.parametrize("identifier", [(), ("--id", "loan")])
    def test_the_labelled_rows_are_the_sample(self, unskew, loans, identifier):
        roles = ("--target", "spend", "--unlabelled", "drop", *identifier)
        roles += () if identifier else ("--exclude", "loan")
        result = unskew(*weigh(*roles, sample="loans.csv", population="loans.csv"))
        assert result.code == 0, result.err
        labelled = loans.dropna(subset="spend")
        assert f"Using the {len(labelled)} rows of the sample that have a label" in result.err
        written = pd.read_csv("w.csv")
        assert list(written.iloc[:, 0]) == list(labelled["loan"])  # which are the row numbers
        labelled.drop(columns="loan").to_csv("labelled.csv", index=False)
        alone = unskew("weigh", "labelled.csv", "people.parquet", "--target", "spend",
                       "-o", "alone.csv")  # fmt: skip
        assert alone.code == 0, alone.err
        np.testing.assert_array_equal(pd.read_csv("alone.csv")["weight"], written["weight"])
        judged = unskew("diagnose", "loans.csv", "people.parquet", *roles, "--weights", "w.csv")
        assert judged.code == 0, judged.err

    @pytest.mark.parametrize("weight", [(), ("--sample-weight", "persons")])
    def test_all_rows_of_the_file_are_the_population(self, unskew, loans, weight):
        persons = np.random.default_rng(1).integers(1, 4, len(loans))
        loans = loans.assign(persons=persons) if weight else loans
        loans.to_csv("loans.csv", index=False)
        roles = ("--target", "spend", "--id", "loan", *weight)
        joined = unskew("weigh", "loans.csv", *roles, "--unlabelled", "population", "-o", "w.csv")
        assert joined.code == 0, joined.err
        labelled = loans["spend"].notna()
        assert (
            f"The population is all 4,000 rows of the file: {(~labelled).sum():,} without a label, "
            f"and {labelled.sum():,} with one, which are the sample." in joined.err
        )
        assert "against 4,000 population rows" in joined.out
        loans[labelled].to_csv("sample.csv", index=False)
        loans.drop(columns=["loan", "spend"]).to_csv("everyone.csv", index=False)
        other = ("--population-weight", "persons") if weight else ()
        apart = unskew("weigh", "sample.csv", "everyone.csv", *roles, *other, "-o", "apart.csv")
        assert apart.code == 0, apart.err
        weights = [pd.read_csv(name)["weight"] for name in ("w.csv", "apart.csv")]
        np.testing.assert_allclose(*weights)
        judged = unskew("diagnose", "loans.csv", *roles, "--unlabelled", "population",
                        "--weights", "w.csv")  # fmt: skip
        assert judged.code == 0, judged.err

    def test_a_population_beside_all_rows_of_the_file_is_refused(self, unskew, loans):
        roles = ("--target", "spend", "--exclude", "loan", "--unlabelled", "population")
        both = unskew(*weigh(*roles, sample="loans.csv"))
        assert both.code == 2
        assert "leave POPULATION out" in both.err
        arguments = ("weigh", "loans.csv", *roles, "-o", "w.csv")
        assert "names the weights of all" in unskew(*arguments, "--population-weight", "age").err
        loans.assign(spend=1.0).to_csv("loans.csv", index=False)
        assert "is there in every row" in unskew(*arguments).err

    def test_without_target_or_labels(self, unskew, loans):
        arguments = weigh("--method", "kmm", "--unlabelled", "drop", sample="loans.csv")
        assert "--unlabelled drop needs --target" in unskew(*arguments).err
        loans.assign(spend=None).to_csv("loans.csv", index=False)
        arguments = weigh("--target", "spend", "--unlabelled", "drop", sample="loans.csv")
        assert "'spend' is missing in every row" in unskew(*arguments).err


class TestDoubtfulColumns:
    def test_an_identifier_among_the_features_is_noted(self, unskew, survey, answers, people):
        people = people.reset_index(names="person")
        people.to_parquet("people.parquet")
        answers.assign(customer=np.arange(len(answers)) * 12).rename(
            columns={"customer": "person"}
        ).to_csv("answers.csv", index=False)
        result = unskew(*weigh("--target", "spend"))
        assert result.code == 0, result.err
        assert "Column 'person' looks like an identifier: 333 values in 333 rows." in result.err
        assert "--exclude person" in result.err
        assert "--id person" in result.err
        for chosen in (("--id", "person"), ("--columns", "person,age,income,town")):
            result = unskew(*weigh("--target", "spend", *chosen))
            assert "looks like" not in result.err

    def test_very_many_categories(self, unskew, survey, answers, people):
        random = np.random.default_rng(0)
        for name, rows in (("answers.csv", answers), ("people.csv", people)):
            rows.assign(street=random.integers(0, 90, len(rows)).astype(str)).replace(
                {"street": r"^"}, {"street": "s"}, regex=True
            ).to_csv(name, index=False)
        result = unskew(*weigh(*ROLES, population="people.csv"))
        assert "Column 'street' looks like very many categories" in result.err
        assert "leave it out with --exclude street" in result.err


class TestCheck:
    def test_bias_of_the_sample_and_what_weights_leave(self, unskew, survey):
        diagnose = ("diagnose", "answers.csv", "people.parquet", *ROLES)
        assert unskew(*diagnose).code == 0
        biased = unskew(*diagnose, "--check", "--quiet")
        assert biased == (1, "", "")
        assert unskew(*weigh(*ROLES, "-q")).code == 0
        corrected = unskew(*diagnose, "--weights", "w.csv", "--check")
        assert corrected.code == 0, corrected.out
        weights = pd.read_csv("w.csv", dtype={"customer": str})
        weights.assign(weight=1.0).to_csv("w.csv", index=False)
        left = unskew(*diagnose, "--weights", "w.csv", "--check", "--json")
        assert left.code == 1
        assert '"status": "not corrected"' in left.out

    def test_limits_say_how_much_bias_matters(self, unskew, survey, answers):
        diagnose = ("diagnose", "answers.csv", "people.parquet", *ROLES, "--quiet", "--check")
        sample = answers[["age", "income", "town"]]
        found = unskew_diagnose(sample, Population("people.parquet"), y=answers["spend"]).bias
        auc = found.classifier.before.statistic
        largest = max(abs(line.before) for each in found.features for line in each.lines)
        for limits, code in {
            f"auc={auc + 0.001}": 0,
            f"auc={auc - 0.001}": 1,
            f"difference={largest + 0.001}": 0,
            f"difference={largest - 0.001}": 1,
            f"auc={auc + 0.001},difference={largest - 0.001}": 1,
            f"auc={auc + 0.001}, difference={largest + 0.001}": 0,
        }.items():
            assert unskew(*diagnose, limits) == (code, "", "")
        assert unskew(*diagnose[:-1], f"--check=auc={auc + 0.001}").code == 0
        for wrong in ("auc=much", "auc=0.5,kappa=1", "auc=0.5,"):
            refused = unskew(*diagnose, wrong)
            assert refused.code == 2
            assert "--check takes limits such as auc=0.55,difference=0.1" in refused.err

    def test_a_million_rows_show_bias_that_is_within_the_limits(
        self, unskew, tmp_path, monkeypatch
    ):
        monkeypatch.chdir(tmp_path)
        random = np.random.default_rng(0)
        pd.DataFrame({"x": random.normal(0.1, 1, 50_000)}).to_csv("s.csv", index=False)
        pd.DataFrame({"x": random.normal(0.0, 1, 50_000)}).to_csv("u.csv", index=False)
        assert unskew("diagnose", "s.csv", "u.csv", "--check", "-q").code == 1
        limits = "auc=0.55,difference=0.2"
        assert unskew("diagnose", "s.csv", "u.csv", "--check", limits, "-q").code == 0

    def test_no_bias(self, unskew, survey, people):
        people.sample(300, random_state=0).to_csv("even.csv", index=False)
        assert unskew("diagnose", "even.csv", "people.parquet", "--check").code == 0


class TestUglyFiles:
    def test_the_index_that_pandas_writes_is_ignored(self, unskew, survey, answers):
        assert unskew(*weigh(*ROLES)).code == 0
        expected = (survey / "w.csv").read_bytes()
        answers.to_csv("answers.csv", index=True)
        result = unskew(*weigh(*ROLES))
        assert result.code == 0, result.err
        assert "Ignoring the sample's column without a name" in result.err
        assert (survey / "w.csv").read_bytes() == expected

    @pytest.mark.parametrize("value", ["?", "n.s.", "1,200"])
    def test_text_among_numbers_is_noted(self, unskew, survey, answers, value):
        answers.assign(income=[value, *answers["income"][1:]]).to_csv("answers.csv", index=False)
        answers.drop(columns=["customer", "spend"]).to_csv("people.csv", index=False)
        result = unskew(*weigh(*ROLES, "--allow-uncovered", "1", population="people.csv"))
        assert result.code == 0, result.err
        assert f"'income' is read as text, its values as categories: '{value}'" in result.err

    def test_one_row_is_too_few_to_judge(self, unskew, survey, answers):
        answers.head(1).to_csv("answers.csv", index=False)
        result = unskew(*weigh(*ROLES, "--method", "ratio", population="answers.csv"))
        assert result.code == 0, result.err
        assert "rows are too few to train and test a classifier." in result.out

    def test_constant_columns_and_names_with_spaces(self, unskew, survey, answers, people):
        names = {"age": "age 🎂", "income": "in come, yearly"}
        answers.rename(columns=names).assign(same=1).to_csv("answers.csv", index=False)
        people.rename(columns=names).assign(same=1).to_parquet("people.parquet")
        result = unskew(*weigh(*ROLES))
        assert result.code == 0, result.err
        assert result.err == ""
        result = unskew(*weigh(*ROLES, "--exclude", "in come, yearly", "--exclude", "age 🎂,same"))
        assert result.code == 0, result.err


class TestCauses:
    """Messages that name what is wrong with a file."""

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
    def test_utf_16(self, unskew, survey, answers, people, encoding):
        answers.to_csv("s16.csv", index=False, encoding=encoding)
        people.to_csv("u16.csv", index=False, encoding=encoding)
        for files in (("s16.csv", "people.parquet"), ("answers.csv", "u16.csv")):
            for more in ((), ("--delimiter", ",")):
                result = unskew("diagnose", *files, *ROLES, *more)
                assert result.code == 2
                assert "16.csv' is not UTF-8 text; its zero bytes are those of UTF-16" in result.err

    def test_decimal_commas(self, unskew, survey, answers, people):
        comma = people.assign(income=people["income"].map(lambda v: str(v).replace(".", ",")))
        comma.to_csv("people.csv", index=False)
        result = unskew("estimate", "answers.csv", "people.csv", *ROLES)
        assert result.code == 2
        assert "Write numbers with a decimal point, not a comma." in result.err
        comma = answers.assign(spend=answers["spend"].map(lambda v: str(v).replace(".", ",")))
        comma.to_csv("answers.csv", index=False)
        result = unskew("estimate", "answers.csv", "people.parquet", *ROLES)
        assert result.code == 2
        assert "The target 'spend' is read as text, since '161,048' is not a number" in result.err

    @pytest.mark.parametrize("more", [(), ("--statistic", "mean"), ("--quantile", "0.5")])
    def test_one_word_in_a_target_of_numbers(self, unskew, survey, answers, more):
        answers["spend"] = answers["spend"].astype(object)
        answers.loc[7, "spend"] = "refused"
        answers.to_csv("answers.csv", index=False)
        result = unskew("estimate", "answers.csv", "people.parquet", *ROLES, *more)
        assert result.code == 2
        assert "The target 'spend' is read as text, since 'refused' is not a number" in result.err
