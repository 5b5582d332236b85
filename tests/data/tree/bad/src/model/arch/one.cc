kOne
