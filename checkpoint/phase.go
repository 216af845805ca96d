package checkpoint

import "github.com/riverbed/riverbed/core/flow"

// Phases of an epoch, in their order. Each is told before and after.
const (
	Copying       = "copying"       // the loop copies what changed
	Copied        = "copied"        //
	Staging       = "staging"       // the sink hands over what was written
	Staged        = "staged"        //
	Uploading     = "uploading"     // the data object
	Uploaded      = "uploaded"      //
	Publishing    = "publishing"    // the manifest
	Published     = "published"     //
	Committing    = "committing"    // the sink
	Committed     = "committed"     //
	Marked        = "marked"        // the commit is noted for the next manifest
	Acknowledging = "acknowledging" // the sources
	Acknowledged  = "acknowledged"  //
)

// Phase is told where an epoch of a pipeline is. Tests set it before anything runs, to end the process there.
var Phase = func(phase string, epoch flow.Epoch) {}
