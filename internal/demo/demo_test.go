package demo_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/demo"
	"github.com/countersign/countersign/internal/skill"
)

func TestSkills(t *testing.T) {
	want := map[string]struct {
		status  skill.ParseStatus
		process skill.Process
	}{
		"proofread-page":       {skill.ParseOK, skill.ProcessYes},
		"house-style":          {skill.ParseOK, skill.ProcessNo},
		"typography-reference": {skill.ParseOK, skill.ProcessNo},
		"plain-language":       {skill.ParseOK, skill.ProcessNo},
		"page-metadata":        {skill.ParseOK, skill.ProcessNo},
		"broken-example":       {skill.ParseRepaired, skill.ProcessNo},
	}
	found := 0
	err := fs.WalkDir(demo.Files(), ".", func(path string, _ fs.DirEntry, err error) error {
		folder, isSkill := strings.CutSuffix(path, "/SKILL.md")
		if err != nil || !isSkill {
			return err
		}
		data, err := fs.ReadFile(demo.Files(), path)
		if err != nil {
			return err
		}
		file, err := skill.Parse(data)
		if err != nil {
			return err
		}
		found++
		if file.Status != want[folder].status || file.Version.Process != want[folder].process {
			t.Errorf("%s: %s, process %s", folder, file.Status, file.Version.Process)
		}
		return nil
	})
	if err != nil || found != len(want) {
		t.Errorf("%d skills, %v", found, err)
	}
}
