"""Objects of other libraries, real if the library is installed, and small fakes of them."""
