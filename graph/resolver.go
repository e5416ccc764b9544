package graph

// Resolver roots.
type Resolver struct{}
