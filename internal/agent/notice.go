package agent

import (
	"slices"

	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/wording"
)

func notice(code run.NoticeCode, args ...string) run.Notice {
	return run.Notice{Code: code, Args: args}
}

// said is a notice where a message is stored, in English.
func said(n run.Notice) string { return wording.Say(wording.English, string(n.Code), n.Args...) }

func sameNotice(a, b run.Notice) bool { return a.Code == b.Code && slices.Equal(a.Args, b.Args) }
