package library

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/tool"
)

// SetToolEnabled switches a tool on or off for the whole installation, at once
// (RULES T7). Administrators only; audited when it changes.
func (l *Library) SetToolEnabled(ctx context.Context, by actor.Actor, name string, enabled bool) error {
	if err := needAdministrator(by); err != nil {
		return err
	}
	name, err := label("name", name)
	if err != nil {
		return err
	}
	if l.KnownTool != nil {
		known, err := l.KnownTool(ctx, name)
		if err != nil {
			return err
		}
		if !known {
			return fault.New(fault.NotFound, "There is no tool %q.", name)
		}
	}
	return l.retried(ctx, "the tool's switch", func() (change.Change, error) {
		switches, err := l.Store.ToolSwitches(ctx)
		if err != nil {
			return change.Change{}, err
		}
		was, there := switches[name]
		if there && was == enabled {
			return change.Change{}, nil
		}
		id := uuid.NewSHA1(keyedRows, []byte("tool "+name))
		c := change.Change{Audit: []audit.Entry{audit.Record(l.World, by, audit.ToolSwitched).With("tool", name).With("enabled", enabled)}}
		if there {
			c.Updates = []change.Update{{
				Table: toolSwitchesTable, ID: id, If: []change.Value{toolSwitchEnabled.Is(was)}, Set: []change.Value{toolSwitchEnabled.To(enabled)},
			}}
			return c, nil
		}
		c.Inserts = []change.Insert{{Table: toolSwitchesTable, Row: []change.Value{
			toolSwitchID.To(id), toolSwitchName.To(name), toolSwitchEnabled.To(enabled),
		}}}
		return c, nil
	})
}

// SetToolGroupEnabled switches a group of tools on or off for the whole installation,
// at once. A group that is off takes its tools along; one that is on leaves each to its
// own switch (RULES T6, T7). Administrators only; audited when it changes.
func (l *Library) SetToolGroupEnabled(ctx context.Context, by actor.Actor, group tool.Group, enabled bool) error {
	if err := needAdministrator(by); err != nil {
		return err
	}
	if !slices.Contains(tool.Groups, group) {
		return fault.New(fault.NotFound, "There is no group of tools %q.", clip(string(group), 60))
	}
	return l.retried(ctx, "the group's switch", func() (change.Change, error) {
		switches, err := l.Store.GroupSwitches(ctx)
		if err != nil {
			return change.Change{}, err
		}
		was, there := switches[group]
		if was == enabled && there || enabled && !there { // a group nobody switched is on
			return change.Change{}, nil
		}
		id := uuid.NewSHA1(keyedRows, []byte("tool group "+string(group)))
		c := change.Change{Audit: []audit.Entry{audit.Record(l.World, by, audit.ToolSwitched).With("group", string(group)).With("enabled", enabled)}}
		if there {
			c.Updates = []change.Update{{
				Table: groupSwitchesTable, ID: id, If: []change.Value{groupSwitchEnabled.Is(was)}, Set: []change.Value{groupSwitchEnabled.To(enabled)},
			}}
			return c, nil
		}
		c.Inserts = []change.Insert{{Table: groupSwitchesTable, Row: []change.Value{
			groupSwitchID.To(id), groupSwitchName.To(group), groupSwitchEnabled.To(enabled),
		}}}
		return c, nil
	})
}

// GroupSwitches tells the groups of tools whose switch was ever set; the others are on.
func (l *Library) GroupSwitches(ctx context.Context) (map[tool.Group]bool, error) {
	return l.Store.GroupSwitches(ctx)
}

// ToolSwitches tells the tools whose switch was ever set. A tool that is not among
// them is as its own declaration says.
func (l *Library) ToolSwitches(ctx context.Context) (map[string]bool, error) {
	return l.Store.ToolSwitches(ctx)
}
