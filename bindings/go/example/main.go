// Command example prints the text that a model writes behind a prompt: go run ./example MODEL [PROMPT]
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	jitrun "github.com/jitrun/jitrun/bindings/go"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	if len(arguments) == 0 {
		return fmt.Errorf("the path of a model was expected")
	}
	prompt := "Once upon a time"
	if len(arguments) > 1 {
		prompt = arguments[1]
	}
	model, err := jitrun.Open(ctx, arguments[0], nil)
	if err != nil {
		return err
	}
	defer model.Close()
	sampling, err := model.SamplingDefaults()
	if err != nil {
		return err
	}
	sampling.Seed = 7
	session, err := model.NewSession(ctx, &jitrun.SessionOptions{Context: 512, Sampling: &sampling})
	if err != nil {
		return err
	}
	defer session.Close()
	if err := session.FeedText(ctx, prompt, false); err != nil {
		return err
	}
	fmt.Print(prompt)
	g := session.Generate(ctx, 64)
	for g.Next() {
		fmt.Print(g.Text())
	}
	fmt.Printf("\n[%d tokens]\n", len(g.IDs()))
	return g.Err()
}
