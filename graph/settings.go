package graph

import (
	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/access"
)

func toSetting(s access.ShownSetting) *model.Setting {
	return &model.Setting{Name: s.Name, Value: s.InForce, Default: s.Default, Description: s.Description}
}

func toSettings(settings []access.ShownSetting) []*model.Setting {
	out := make([]*model.Setting, len(settings))
	for i, s := range settings {
		out[i] = toSetting(s)
	}
	return out
}
