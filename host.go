package riverbed

import "github.com/riverbed/riverbed/connectors/host"

// HostCall runs one call of a connector that lives in the program around the library.
type HostCall = host.Call

// RegisterHost names what runs such calls in this process. Without it these connectors say that they cannot be used.
func RegisterHost(call HostCall) { host.Register(call) }
