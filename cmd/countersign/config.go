package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/countersign/countersign/internal/webhook"
)

// environment is the part of --help that says what can be set.
const environment = `Environment:
  COUNTERSIGN_ADDR            address to serve on (127.0.0.1:8080)
  COUNTERSIGN_DATABASE_URL    sqlite:FILE (sqlite:countersign.db) or postgres://…
  COUNTERSIGN_ADMIN_TOKEN     a token that always signs in the built-in administrator;
                              without it one is made at the first start and printed once
  COUNTERSIGN_ENCRYPTION_KEY  one or more id:base64(32 bytes), separated by commas, the
                              first encrypts; made beside an embedded database, required
                              with PostgreSQL
  COUNTERSIGN_GIT_MIRROR      folder of bare repositories, OWNER/REPOSITORY.git, that
                              sources are read from instead of GitHub
  COUNTERSIGN_DEMO            on or off; on by default without COUNTERSIGN_DATABASE_URL
  COUNTERSIGN_MIGRATE         on (default) or off: whether serve migrates the database
  COUNTERSIGN_CONFIG          a YAML file with these and all other settings
                              (docs/configuration.md)`

// config is everything that is decided before the start. A variable of the
// environment wins over the file.
type config struct {
	Addr           string            `yaml:"addr"`
	DatabaseURL    string            `yaml:"databaseUrl"`
	AdminToken     string            `yaml:"adminToken"`
	EncryptionKey  string            `yaml:"encryptionKey"`
	GitMirror      string            `yaml:"gitMirror"`
	Demo           string            `yaml:"demo"`
	Migrate        string            `yaml:"migrate"`
	Origins        []string          `yaml:"origins"`
	TrustedProxies []netip.Prefix    `yaml:"trustedProxies"`
	HideSchema     bool              `yaml:"hideSchema"`
	LogLevel       slog.Level        `yaml:"logLevel"`
	GitHubHosts    []string          `yaml:"githubHosts"`    // enterprise servers, beside github.com
	GitHubNetworks []netip.Prefix    `yaml:"githubNetworks"` // private networks that they may lie in
	GitHubProxy    string            `yaml:"githubProxy"`    // the environment's is not used
	ContentHooks   []webhook.Target  `yaml:"contentHooks"`   // told of every write to the content
	MCPPrograms    string            `yaml:"mcpPrograms"`    // on or off: whether MCP servers over stdio are started
	MCPNetworks    []netip.Prefix    `yaml:"mcpNetworks"`    // private networks that MCP servers may lie in
	NotifyNetworks []netip.Prefix    `yaml:"notifyNetworks"` // private networks that notified servers may lie in
	Settings       map[string]string `yaml:"settings"`
}

// readConfig reads the file that getenv names, then the environment.
func readConfig(getenv func(string) string) (config, error) {
	var c config
	if path := getenv("COUNTERSIGN_CONFIG"); path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			return c, fmt.Errorf("COUNTERSIGN_CONFIG: %w", err)
		}
		d := yaml.NewDecoder(bytes.NewReader(data))
		d.KnownFields(true)
		if err := d.Decode(&c); err != nil && !errors.Is(err, io.EOF) {
			return c, fmt.Errorf("COUNTERSIGN_CONFIG: %s: %w", path, err)
		}
	}
	for _, v := range []struct {
		name string
		into *string
	}{
		{"COUNTERSIGN_ADDR", &c.Addr},
		{"COUNTERSIGN_DATABASE_URL", &c.DatabaseURL},
		{"COUNTERSIGN_ADMIN_TOKEN", &c.AdminToken},
		{"COUNTERSIGN_ENCRYPTION_KEY", &c.EncryptionKey},
		{"COUNTERSIGN_GIT_MIRROR", &c.GitMirror},
		{"COUNTERSIGN_DEMO", &c.Demo},
		{"COUNTERSIGN_MIGRATE", &c.Migrate},
	} {
		*v.into = cmp.Or(getenv(v.name), *v.into)
	}
	return c.withDefaults()
}

func (c config) withDefaults() (config, error) {
	if c.Demo == "" {
		c.Demo = map[bool]string{true: "on", false: "off"}[c.DatabaseURL == ""]
	}
	c.Addr = cmp.Or(c.Addr, "127.0.0.1:8080")
	c.DatabaseURL = cmp.Or(c.DatabaseURL, "sqlite:countersign.db")
	c.Migrate, c.MCPPrograms = cmp.Or(c.Migrate, "on"), cmp.Or(c.MCPPrograms, "on")
	for i, host := range c.GitHubHosts {
		c.GitHubHosts[i] = strings.ToLower(host)
	}
	for name, value := range map[string]*string{"COUNTERSIGN_DEMO": &c.Demo, "COUNTERSIGN_MIGRATE": &c.Migrate, "mcpPrograms": &c.MCPPrograms} {
		on, known := switches[strings.ToLower(*value)]
		if !known {
			return c, fmt.Errorf("%s must be on or off, not %q", name, *value)
		}
		*value = on
	}
	if c.postgres() && c.EncryptionKey == "" {
		return c, errors.New("COUNTERSIGN_ENCRYPTION_KEY is required with PostgreSQL; make one with: echo k1:$(openssl rand -base64 32)")
	}
	return c, nil
}

// switches are the spellings of on and off.
var switches = map[string]string{
	"on": "on", "true": "on", "1": "on", "yes": "on",
	"off": "off", "false": "off", "0": "off", "no": "off",
}

func (c config) postgres() bool {
	return strings.HasPrefix(c.DatabaseURL, "postgres://") || strings.HasPrefix(c.DatabaseURL, "postgresql://")
}

// secrets are the secrets of the configuration, which no text of a run and no log may hold.
func (c config) secrets() []string {
	out := []string{c.AdminToken}
	for _, key := range strings.FieldsFunc(c.EncryptionKey, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		if _, secret, found := strings.Cut(key, ":"); found {
			out = append(out, secret)
		}
	}
	for _, target := range c.ContentHooks {
		out = append(out, target.Secret)
	}
	for _, address := range []string{c.DatabaseURL, c.GitHubProxy} {
		if at, err := url.Parse(address); err == nil && at.User != nil {
			password, _ := at.User.Password()
			out = append(out, password)
		}
	}
	return out
}
