package agent

import (
	"maps"
	"slices"

	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/tool"
)

// maxRemoteCalls is how many calls to other servers a segment makes (RULES G8).
const maxRemoteCalls = 20

// countRemote counts a call to another server and reports whether it may be made.
func (s *segment) countRemote() bool {
	if s.remoteCalls == maxRemoteCalls {
		return false
	}
	s.remoteCalls++
	return true
}

// noticed takes a tool out of the segment's offer that turned out not to be as it was
// reviewed, and tells people so (RULES G8).
func (s *segment) noticed(c prompt.Call, result tool.Result) []run.Event {
	if result.Token != tool.TokenChanged || !s.spec(c).Remote {
		return nil
	}
	s.offer.definitions = slices.DeleteFunc(slices.Clone(s.offer.definitions), func(d prompt.Definition) bool { return d.Name == c.Tool })
	s.offer.situation.Tools = maps.Clone(s.offer.situation.Tools)
	s.offer.situation.Tools[c.Tool] = false
	told := notice(run.NoticeToolChanged, c.Tool)
	s.notices = append(s.notices, told)
	return noticeEvents(s.agent.World.Now(), []run.Notice{told})
}
