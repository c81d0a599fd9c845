"""Exact noise and channels. The only room with entropy, and it comes from the operating system.

`app.mechanisms.draw` turns a `Noise` value into integers. Every distribution has a module of its own
(`laplace`, ...). Samplers that are not OpenDP's take their random bits as an argument and `draw` hands them
the operating system's (`entropy`); there is no other source in production code: a repeatable one exists in
tests/support only. Modules without entropy (variances, flip probabilities, laws) may be imported by the
estimators.
"""
