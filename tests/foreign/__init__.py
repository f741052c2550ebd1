"""Objects of other libraries, real where they are installed, and small fakes of them."""
