package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func env(pairs ...string) func(string) string {
	values := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return values[name] }
}

func TestReadConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("addr: 0.0.0.0:1\norigins: [https://chat.example.org]\nsettings: {skills.maxBytes: \"1000\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	t.Run("nothing set: embedded database and the demo", func(t *testing.T) {
		c, err := readConfig(env())
		if err != nil || c.DatabaseURL != "sqlite:countersign.db" || c.Demo != "on" || c.Addr != "127.0.0.1:8080" {
			t.Errorf("%+v, %v", c, err)
		}
	})
	t.Run("a database of one's own has no demo unless it is asked for", func(t *testing.T) {
		c, err := readConfig(env("COUNTERSIGN_DATABASE_URL", "sqlite:x.db"))
		if err != nil || c.Demo != "off" {
			t.Errorf("%+v, %v", c, err)
		}
	})
	t.Run("the environment wins over the file", func(t *testing.T) {
		c, err := readConfig(env("COUNTERSIGN_CONFIG", file, "COUNTERSIGN_ADDR", "127.0.0.1:2"))
		if err != nil || c.Addr != "127.0.0.1:2" || len(c.Origins) != 1 || c.Settings["skills.maxBytes"] != "1000" {
			t.Errorf("%+v, %v", c, err)
		}
	})

	for name, tt := range map[string]struct {
		env  func(string) string
		says string
	}{
		"PostgreSQL needs a key":   {env("COUNTERSIGN_DATABASE_URL", "postgres://x"), "COUNTERSIGN_ENCRYPTION_KEY is required"},
		"the demo is on or off":    {env("COUNTERSIGN_DEMO", "perhaps"), "must be on or off"},
		"a file that is not there": {env("COUNTERSIGN_CONFIG", file+"x"), "COUNTERSIGN_CONFIG"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := readConfig(tt.env); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v", err)
			}
		})
	}

	t.Run("an unknown key of the file is named", func(t *testing.T) {
		if err := os.WriteFile(file, []byte("adr: x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readConfig(env("COUNTERSIGN_CONFIG", file)); err == nil || !strings.Contains(err.Error(), "adr") {
			t.Errorf("got %v", err)
		}
	})
}
