"""
Mroz: wages of those who work
=============================

Of 753 married women in 1975, 428 worked and have a wage. Who works depends on the wage that she
could get. Heckman's model uses that young children keep women from work and do not change the
offer. The data are those of R's sampleSelection, which writes the file that is read here:
``data(Mroz87, package = "sampleSelection"); arrow::write_parquet(Mroz87, "mroz87.parquet")``.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from unskew import HeckmanRegressor

women = pd.read_parquet("../../../shared/references/mroz87.parquet")
women["exper2"] = women["exper"] ** 2
log_wage = np.log(women["wage"].where(women["lfp"] == 1))  # missing for those who do not work
selection = ["nwifeinc", "educ", "exper", "exper2", "age", "kids5", "kids618"]
selection = [name for name in selection if name in women]

# %%
# Wooldridge's example 17.5. A test of ρ = 0 asks whether selection matters here: it does not show.
model = HeckmanRegressor(selection=selection, outcome=["educ", "exper", "exper2"], method="ml")
model.fit(women, log_wage)
print(model.summary())

# %%
educ = np.arange(8, 18)
grid = women[selection].mean().to_frame().T.loc[[0] * len(educ)].assign(educ=educ.astype(float))
figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
axes.plot(women["educ"], log_wage, ".", color="#bbbbbb", label="those who work")
axes.plot(educ, model.predict(grid), color="#1b6ca8", label="offer to everyone")
axes.plot(
    educ, model.predict(grid, given_selected=True), "--", color="#c1440e", label="wage if working"
)
axes.set(xlabel="years of education", ylabel="logarithm of the wage")
axes.legend(frameon=False)
plt.show()
