package library

import (
	"context"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
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
	if l.KnownTool != nil && !l.KnownTool(name) {
		return fault.New(fault.NotFound, "There is no tool %q.", name)
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

// ToolSwitches tells the tools whose switch was ever set. A tool that is not among
// them is as its own declaration says.
func (l *Library) ToolSwitches(ctx context.Context) (map[string]bool, error) {
	return l.Store.ToolSwitches(ctx)
}
