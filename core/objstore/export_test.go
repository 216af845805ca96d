package objstore

// Conformance is for tests of stores that need packages which import this one.
var Conformance = conformance
