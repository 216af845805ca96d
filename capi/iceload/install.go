package iceload

import "github.com/riverbed/riverbed/connectors/iceberg"

// Importing this package is enough, as of a database driver: Iceberg's connector then asks the library.
func init() { iceberg.Call = Call }
