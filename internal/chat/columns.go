package chat

import (
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/tool"
)

// The tables this room changes.
const (
	conversations change.Table = "conversations"
	entries       change.Table = "conversation_entries"
	points        change.Table = "open_points"
)

var (
	cID            = change.ID(conversations, "id")
	cOwner         = change.ID(conversations, "owner_id")
	cConfiguration = change.ID(conversations, "configuration_id")
	cTitle         = change.Text[string](conversations, "title")
	// cSearch is the title without its case, for searching.
	cSearch     = change.Text[string](conversations, "search")
	cStatus     = change.Text[Status](conversations, "status")
	cRun        = change.ID(conversations, "run_id")
	cSeen       = change.Int(conversations, "seen")
	cSkill      = change.ID(conversations, "skill_id")
	cSubject    = change.JSON[*tool.Record](conversations, "subject")
	cStarted    = change.Bool(conversations, "started")
	cCard       = change.JSON[*Card](conversations, "card")
	cInput      = change.Sealed(conversations, "input")
	cQueue      = change.Sealed(conversations, "queue")
	cQueued     = change.Int(conversations, "queued")
	cPinned     = change.Bool(conversations, "pinned")
	cArchived   = change.Time(conversations, "archived_at")
	cLeaseOwner = change.Text[string](conversations, "lease_owner")
	cLeaseUntil = change.Time(conversations, "lease_until")
	cEntries    = change.Int(conversations, "entries")
	cCreatedAt  = change.Time(conversations, "created_at")
	cActiveAt   = change.Time(conversations, "active_at")
)

var (
	eID           = change.ID(entries, "id")
	eConversation = change.ID(entries, "conversation_id")
	eSequence     = change.Int(entries, "sequence")
	eKind         = change.Text[Kind](entries, "kind")
	eStatus       = change.Text[Status](entries, "status")
	eRun          = change.ID(entries, "run_id")
	eText         = change.Sealed(entries, "text")
	eData         = change.JSON[Data](entries, "data")
	eAt           = change.Time(entries, "at")
)

var (
	pID           = change.ID(points, "id")
	pKey          = change.Text[string](points, "key")
	pSkill        = change.ID(points, "skill_id")
	pSubject      = change.JSON[*tool.Record](points, "subject")
	pTable        = change.Text[string](points, "target_table")
	pRecord       = change.Text[string](points, "target_id")
	pFields       = change.JSON[[]string](points, "fields")
	pTool         = change.Text[string](points, "tool")
	pBy           = change.ID(points, "skipped_by")
	pConversation = change.ID(points, "conversation_id")
	pRun          = change.ID(points, "run_id")
	pSkippedAt    = change.Time(points, "skipped_at")
	pTimes        = change.Int(points, "times")
	pClosedAt     = change.Time(points, "closed_at")
	pClosedRun    = change.ID(points, "closed_run_id")
	pCreatedAt    = change.Time(points, "created_at")
)
