package graph

import (
	"context"
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
)

func toEntry(e audit.Entry) *model.AuditEntry {
	return &model.AuditEntry{
		ID: entryKind.id(e.ID), Index: e.Index, At: e.At, Event: auditEvents.out(e.Event), ActorID: userKind.maybe(e.Actor),
		SourceID: sourceKind.maybe(e.Source), SkillID: skillKind.maybe(e.Skill), RunID: runKind.maybe(e.Run), Digest: given(e.Digest),
		Detail: toDetail(e.Detail), LeafHash: hex.EncodeToString(e.LeafHash), Domain: e,
	}
}

func entryKey(e audit.Entry) string { return strconv.FormatInt(e.Index, 10) }

func entryConnection(w window, read []audit.Entry) *model.AuditEntryConnection {
	c := &model.AuditEntryConnection{}
	c.Nodes, c.Edges, c.PageInfo = connect(w, read, entryKey, toEntry,
		func(cursor string, n *model.AuditEntry) *model.AuditEntryEdge {
			return &model.AuditEntryEdge{Cursor: cursor, Node: n}
		})
	return c
}

// needAudit refuses who may not read the trail.
func needAudit(by actor.Actor) error {
	switch {
	case by.IsNobody():
		return fault.New(fault.Unauthenticated, "Sign in first.")
	case !by.May(actor.AuditRead):
		return fault.New(fault.Forbidden, "This needs the permission %s.", actor.AuditRead)
	}
	return nil
}

// auditFilter reads which entries are wanted.
func auditFilter(f *model.AuditFilter) (audit.Filter, error) {
	if f == nil {
		return audit.Filter{}, nil
	}
	var out audit.Filter
	for _, e := range f.Events {
		out.Events = append(out.Events, audit.Event(e))
	}
	for _, id := range []struct {
		kind kind
		from *string
		to   *[16]byte
	}{
		{userKind, f.ActorID, (*[16]byte)(&out.Actor)},
		{sourceKind, f.SourceID, (*[16]byte)(&out.Source)},
		{skillKind, f.SkillID, (*[16]byte)(&out.Skill)},
		{runKind, f.RunID, (*[16]byte)(&out.Run)},
	} {
		if id.from == nil {
			continue
		}
		row, err := id.kind.row(*id.from)
		if err != nil {
			return audit.Filter{}, err
		}
		*id.to = row
	}
	out.Digest = text(f.Digest)
	if f.Since != nil {
		out.Since = *f.Since
	}
	if f.Until != nil {
		out.Until = *f.Until
	}
	return out, nil
}

// auditPage is a window as the trail reads it: it lists the newest first.
func auditPage(w window) (audit.Page, error) {
	index, given, err := w.number()
	out := audit.Page{Limit: w.fetch(), OldestFirst: w.backward}
	if given {
		out.Beyond = &index
	}
	return out, err
}

// newestFirst puts entries in the order of the trail's list: a page that was read backwards comes from its end.
func newestFirst(read []audit.Entry) []audit.Entry {
	return slices.SortedFunc(slices.Values(read), func(a, b audit.Entry) int { return int(b.Index - a.Index) })
}

const (
	followBatch = 200
	healEvery   = 2 * time.Second // how late a subscription is that nobody woke
)

// follow is the trail after an index: what is stored, then what comes, each entry once and in order.
func (r *Resolver) follow(ctx context.Context, filter audit.Filter, after int64) func(yield func(audit.Entry, error) bool) {
	return func(yield func(audit.Entry, error) bool) {
		wait, stop := r.listen(ctx, change.AuditTopic)
		defer stop()
		for {
			entries, err := r.Audit.AuditEntries(ctx, filter, audit.Page{Beyond: &after, Limit: followBatch, OldestFirst: true})
			if err != nil {
				yield(audit.Entry{}, err)
				return
			}
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
				after = e.Index
			}
			if len(entries) < followBatch && !wait() {
				return
			}
		}
	}
}

// listen returns a function that waits until a topic rang, another channel says so, or a while passed, and is false when the client is gone.
func (r *Resolver) listen(ctx context.Context, topic change.Topic) (wait func() bool, stop func()) {
	var rings <-chan struct{}
	stopBell := func() {}
	if r.Bell != nil {
		rings, stopBell = r.Bell.Listen(topic)
	}
	heal := time.NewTicker(healEvery)
	wait = func() bool {
		select {
		case <-rings:
		case <-heal.C:
		case <-ctx.Done():
			return false
		}
		return true
	}
	return wait, func() { heal.Stop(); stopBell() }
}

// trailFrom says after which index a subscription begins; none is the end of the trail.
func (r *Resolver) trailFrom(ctx context.Context, after *int64) (int64, error) {
	if after != nil {
		return *after, nil
	}
	size, err := r.Audit.AuditSize(ctx)
	return size - 1, err
}

func toCheckpoint(c audit.Signed) *model.AuditCheckpoint {
	return &model.AuditCheckpoint{
		Origin: c.Origin, Size: c.Size, RootHash: hex.EncodeToString(c.Root), Note: c.Note, VerifierKey: c.Verifier, FirstIndex: c.Floor,
	}
}

func toInclusion(p audit.Inclusion) *model.AuditInclusionProof {
	return &model.AuditInclusionProof{
		Index: p.Index, LeafHash: hex.EncodeToString(p.Leaf), TreeSize: p.Size, RootHash: hex.EncodeToString(p.Root), Hashes: hexes(p.Hashes),
	}
}

func toConsistency(c audit.Consistency) *model.AuditConsistencyProof {
	return &model.AuditConsistencyProof{
		From: c.From, FromRootHash: hex.EncodeToString(c.FromRoot), To: c.To, ToRootHash: hex.EncodeToString(c.ToRoot), Hashes: hexes(c.Hashes),
	}
}

func hexes(hashes [][]byte) []string {
	out := make([]string, len(hashes))
	for i, hash := range hashes {
		out[i] = hex.EncodeToString(hash)
	}
	return out
}

// inclusion finds the proof for an entry that is named by its id or its index.
func (r *Resolver) inclusion(ctx context.Context, id *string, index, size *int64) (audit.Inclusion, error) {
	if (id == nil) == (index == nil) {
		return audit.Inclusion{}, fault.New(fault.BadInput, "Give either entryId or index.")
	}
	if index != nil {
		return r.Proofs.InclusionAt(ctx, *index, size)
	}
	entry, err := entryKind.row(*id)
	if err != nil {
		return audit.Inclusion{}, err
	}
	return r.Proofs.InclusionOf(ctx, entry, size)
}
