package audit

import (
	"context"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
)

// ranges makes compact ranges of the trail's tree (RFC 6962).
var ranges = compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}

// treeRange is the leaves [0, size) as a range that can be added to.
func treeRange(ctx context.Context, tiles TileReader, size int64) (*compact.Range, error) {
	hashes, err := nodes(ctx, tiles, compact.RangeNodes(0, uint64(size), nil))
	if err != nil {
		return nil, err
	}
	return ranges.NewRange(0, uint64(size), hashes)
}

// rootOf is the root of a range that begins at 0.
func rootOf(r *compact.Range) ([]byte, error) {
	if r.End() == 0 {
		return rfc6962.DefaultHasher.EmptyRoot(), nil
	}
	return r.GetRootHash(nil)
}

// treeRoot is the root of the tree when it had the given size.
func treeRoot(ctx context.Context, tiles TileReader, size int64) ([]byte, error) {
	r, err := treeRange(ctx, tiles, size)
	if err != nil {
		return nil, err
	}
	return rootOf(r)
}

// inclusionProof proves that the leaf at index is in the tree of the given size;
// 0 ≤ index < size.
func inclusionProof(ctx context.Context, tiles TileReader, index, size int64) ([][]byte, error) {
	plan, err := proof.Inclusion(uint64(index), uint64(size))
	if err != nil {
		return nil, err
	}
	return carryOut(ctx, tiles, plan)
}

// consistencyProof proves that the tree of size to has the tree of size from as
// its beginning; 0 ≤ from ≤ to.
func consistencyProof(ctx context.Context, tiles TileReader, from, to int64) ([][]byte, error) {
	plan, err := proof.Consistency(uint64(from), uint64(to))
	if err != nil {
		return nil, err
	}
	return carryOut(ctx, tiles, plan)
}

func carryOut(ctx context.Context, tiles TileReader, plan proof.Nodes) ([][]byte, error) {
	hashes, err := nodes(ctx, tiles, plan.IDs)
	if err != nil {
		return nil, err
	}
	return plan.Rehash(hashes, rfc6962.DefaultHasher.HashChildren)
}

// verifyConsistency checks a consistency proof.
func verifyConsistency(from, to int64, hashes [][]byte, fromRoot, toRoot []byte) error {
	return proof.VerifyConsistency(rfc6962.DefaultHasher, uint64(from), uint64(to), hashes, fromRoot, toRoot)
}

// leafAt is the hash of the leaf at an index.
func leafAt(ctx context.Context, tiles TileReader, index int64) ([]byte, error) {
	hashes, err := nodes(ctx, tiles, []compact.NodeID{compact.NewNodeID(0, uint64(index))})
	if err != nil {
		return nil, err
	}
	return hashes[0], nil
}
