"""The verb-number model: given the words before a verb, will the verb be singular or plural?

The task is that of Linzen, Dupoux and Goldberg (2016), "Assessing the ability of LSTMs to learn syntax-sensitive
dependencies" (TACL 4), on which Abnar and Zuidema (2020) measure attention rollout and attention flow.
"""
