// Package sim runs whole pipelines, unmodified, in a world of its own: time, the object store, the broker and its sinks are simulated, and fail,
// stall, answer twice and answer ambiguously; a disk forgets what was not synced when its machine loses power. Processes end at any operation, hang and wake up while
// another one runs. What the sink holds is held against a model that knows nothing of the engine.
//
// Invariant: a history is a function of its seed (ADR 37). All that a pipeline does to the world passes through World.do, where each operation takes a
// time of its own that the seed draws; so operations happen one at a time, in an order that the seed decides.
package sim
