"""Which method should a user choose if the contexts shift after the data?

One learning run for each case, method and seed, with contexts of the law of the data.
What the method recommends at a checkpoint is then judged under many deployed laws,
without any further run.
"""
