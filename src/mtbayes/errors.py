"""What mtbayes raises when it cannot do what was asked."""


class InvalidInput(ValueError):
    """An argument breaks a rule; the message gives its name, value, the rule and a remedy."""
