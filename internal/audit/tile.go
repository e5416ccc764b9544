package audit

import (
	"context"
	"fmt"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/rfc6962"
)

const (
	hashSize   = 32
	tileHeight = 8               // levels of the tree that one tile spans
	tileWidth  = 1 << tileHeight // hashes in a full tile
	levelBits  = 56              // of a tile's number, below its level
)

// TileID names a tile of the Merkle tree. Tiles of level 0 hold the hashes of
// leaves; a tile of a level above holds the roots of 256 full tiles of the level
// below. Index counts from the left.
type TileID struct {
	Level int
	Index int64
}

// Number is the id as one number, which grows with the index within a level.
func (id TileID) Number() int64 { return int64(id.Level)<<levelBits | id.Index }

// TileNumbered is the id with that number.
func TileNumbered(n int64) TileID {
	return TileID{Level: int(n >> levelBits), Index: n & (1<<levelBits - 1)}
}

// Tiles are tiles with their hashes, one after the other from the left.
type Tiles map[TileID][]byte

// TileReader reads stored tiles. A tile that there is not yet is missing from the
// answer; one may hold more hashes than a smaller tree had, never others.
type TileReader interface {
	AuditTiles(ctx context.Context, ids []TileID) (Tiles, error)
}

// Edge lists the tiles that a tree of the given size has begun and not filled.
func Edge(size int64) []TileID {
	var ids []TileID
	for level, count := 0, size; count > 0; level, count = level+1, count/tileWidth {
		if count%tileWidth != 0 {
			ids = append(ids, TileID{level, count / tileWidth})
		}
	}
	return ids
}

// Grow adds leaves to a tree of the given size with that edge, and returns the
// tiles that are new or have grown. The edge stays as it was; it may have grown since
// the tree had that size.
func Grow(size int64, edge Tiles, leaves [][]byte) (Tiles, error) {
	g := growth{edge: edge, grown: Tiles{}}
	for i, leaf := range leaves {
		if err := g.put(0, size+int64(i), leaf); err != nil {
			return nil, err
		}
	}
	return g.grown, nil
}

type growth struct{ edge, grown Tiles }

// put adds the hash at a place of a tile level, and a full tile's root to the level
// above.
func (g growth) put(level int, place int64, hash []byte) error {
	id := TileID{level, place / tileWidth}
	tile, begun := g.grown[id]
	held := int(place % tileWidth * hashSize)
	if !begun {
		edge := g.edge[id]
		tile = append(make([]byte, 0, tileWidth*hashSize), edge[:min(held, len(edge))]...)
	}
	if len(hash) != hashSize || len(tile) != held {
		return fmt.Errorf("the trail's tree is damaged: tile %d of level %d holds %d bytes where hash %d of %d bytes belongs",
			id.Index, level, len(tile), place%tileWidth, len(hash))
	}
	tile = append(tile, hash...)
	g.grown[id] = tile
	if len(tile) < tileWidth*hashSize {
		return nil
	}
	return g.put(level+1, id.Index, subtree(tile))
}

// subtree is the root over hashes whose number is a power of two.
func subtree(hashes []byte) []byte {
	if len(hashes) == hashSize {
		return hashes
	}
	half := len(hashes) / 2
	return rfc6962.DefaultHasher.HashChildren(subtree(hashes[:half]), subtree(hashes[half:]))
}

// tileOf is the tile that holds what a node is made of, and where in it: hashes
// from first, count of them.
func tileOf(node compact.NodeID) (id TileID, first, count int) {
	within := node.Level % tileHeight
	leftmost := node.Index << within // at the tile's own level
	return TileID{int(node.Level / tileHeight), int64(leftmost / tileWidth)}, int(leftmost % tileWidth), 1 << within
}

// nodes reads the hashes of nodes whose subtrees are complete.
func nodes(ctx context.Context, from TileReader, ids []compact.NodeID) ([][]byte, error) {
	var wanted []TileID
	seen := map[TileID]bool{}
	for _, node := range ids {
		if id, _, _ := tileOf(node); !seen[id] {
			seen[id] = true
			wanted = append(wanted, id)
		}
	}
	tiles := Tiles{}
	if len(wanted) > 0 {
		var err error
		if tiles, err = from.AuditTiles(ctx, wanted); err != nil {
			return nil, err
		}
	}
	hashes := make([][]byte, len(ids))
	for i, node := range ids {
		id, first, count := tileOf(node)
		tile := tiles[id]
		if len(tile) < (first+count)*hashSize {
			return nil, fmt.Errorf("the trail's tree is damaged: tile %d of level %d holds %d bytes and should hold hash %d",
				id.Index, id.Level, len(tile), first+count-1)
		}
		hashes[i] = subtree(tile[first*hashSize : (first+count)*hashSize])
	}
	return hashes, nil
}
