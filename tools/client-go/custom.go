package main

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const poolGroup = "informers.cloudberth.dev"

var definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// A kind with two versions in one store; the older one knows less of the status.
const definition = `{
	"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
	"metadata": {"name": "pools.informers.cloudberth.dev"},
	"spec": {
		"group": "informers.cloudberth.dev", "scope": "Namespaced", "names": {"kind": "Pool", "plural": "pools"},
		"versions": [
			{"name": "v1beta2", "served": true, "storage": true, "subresources": {"status": {}},
				"schema": {"openAPIV3Schema": {"type": "object", "properties": {
					"spec": {"type": "object", "required": ["size"], "properties": {"size": {"type": "integer"}}},
					"status": {"type": "object", "properties": {"state": {"type": "string"}, "group": {"type": "string"}}}}}}},
			{"name": "v1beta1", "served": true, "storage": false, "deprecated": true, "subresources": {"status": {}},
				"schema": {"openAPIV3Schema": {"type": "object", "properties": {
					"spec": {"type": "object", "required": ["size"], "properties": {"size": {"type": "integer"}}},
					"status": {"type": "object", "properties": {"state": {"type": "string"}}}}}}}
		]
	}
}`

// pools is what a dynamic informer says about one version of the kind.
type pools struct {
	version  string
	informer cache.SharedIndexInformer
	history  *history
}

func parsed(text string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	must(json.Unmarshal([]byte(text), &object.Object), "parse %s", text)
	return object
}

func resource(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: poolGroup, Version: version, Resource: "pools"}
}

// custom defines a kind and follows its objects with dynamic informers, one in each version.
func custom(ctx context.Context, check *checker, config *rest.Config) {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // one of the versions is deprecated
	client, err := dynamic.NewForConfig(config)
	must(err, "dynamic client")
	name := define(ctx, check, client)

	watching, stop := context.WithCancel(ctx)
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, resync)
	all := []*pools{{version: "v1beta2"}, {version: "v1beta1"}}
	for _, one := range all {
		one.history = newHistory()
		one.informer = factory.ForResource(resource(one.version)).Informer()
		_, err := one.informer.AddEventHandler(one.history)
		must(err, "event handler")
	}
	factory.Start(watching.Done())
	for _, one := range all {
		eventually("pools: sync", func() error {
			if !one.informer.HasSynced() {
				return fmt.Errorf("the informer of %s has not synced", one.version)
			}
			return nil
		})
	}
	check.ok("pools: the dynamic informers sync")
	follow(ctx, check, client.Resource(resource("v1beta2")).Namespace(namespace), all)

	stop()
	factory.Shutdown()
	must(client.Resource(definitions).Delete(ctx, name, metav1.DeleteOptions{}), "delete the definition")
	eventually("pools: the definition goes", func() error {
		_, err := client.Resource(definitions).Get(ctx, name, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("got %v", err)
		}
		return nil
	})
	check.ok("pools: the definition goes")
}

func define(ctx context.Context, check *checker, client dynamic.Interface) string {
	made, err := client.Resource(definitions).Create(ctx, parsed(definition), metav1.CreateOptions{})
	must(err, "pools: define")
	eventually("pools: served", func() error {
		for _, version := range []string{"v1beta1", "v1beta2"} {
			if _, err := client.Resource(resource(version)).List(ctx, metav1.ListOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
	check.ok("pools: defined and served in both versions")
	return made.GetName()
}

// follow makes, changes and deletes an object, and waits until every informer has told all of it.
func follow(ctx context.Context, check *checker, client dynamic.ResourceInterface, all []*pools) {
	kept := parsed(`{"apiVersion": "informers.cloudberth.dev/v1beta2", "kind": "Pool", "metadata": {"name": "p"},
		"spec": {"size": 1, "unknown": true}, "status": {"state": "ignored"}}`)
	made, err := client.Create(ctx, kept, metav1.CreateOptions{})
	must(err, "pools: create")
	if _, found, _ := unstructured.NestedFieldNoCopy(made.Object, "spec", "unknown"); found || made.Object["status"] != nil {
		fail("pools: what the schema does not know was kept: %v", made.Object)
	}
	check.ok("pools: what the schema does not know is dropped")
	want := written{versions: []string{made.GetResourceVersion()}}
	wrote := func(object *unstructured.Unstructured, err error, what string) {
		must(err, "pools: %s", what)
		want.versions = append(want.versions, object.GetResourceVersion())
	}

	_, err = client.Patch(ctx, "p", types.MergePatchType, []byte(`{"spec":{"size":"2"}}`), metav1.PatchOptions{})
	if !apierrors.IsInvalid(err) {
		fail("pools: a value of the wrong type: got %v", err)
	}
	check.ok("pools: a value of the wrong type is invalid")
	changed, err := client.Patch(ctx, "p", types.MergePatchType, []byte(`{"spec":{"size":2}}`), metav1.PatchOptions{})
	wrote(changed, err, "patch")
	if changed.GetGeneration() != 2 {
		fail("pools: generation %d after a change", changed.GetGeneration())
	}
	must(unstructured.SetNestedMap(changed.Object, map[string]any{"state": "up", "group": "g"}, "status"), "status")
	changed, err = client.UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	wrote(changed, err, "status")
	for _, one := range all {
		eventually("pools: history of "+one.version, func() error { return one.history.compare("p", want) })
		one.agrees(map[string]any{"v1beta1": nil, "v1beta2": "g"}[one.version])
	}
	check.ok("pools: every informer holds the object in its own version")

	must(client.Delete(ctx, "p", metav1.DeleteOptions{}), "pools: delete")
	want.gone = true
	for _, one := range all {
		eventually("pools: history of "+one.version, func() error { return one.history.compare("p", want) })
	}
	check.ok("pools: every write was told once and in order")
}

// agrees fails unless the informer's object is of its version and has this group in its status.
func (p *pools) agrees(group any) {
	held, found, err := p.informer.GetStore().GetByKey(namespace + "/p")
	if err != nil || !found {
		fail("pools: the informer of %s holds no object: %v", p.version, err)
	}
	object := held.(*unstructured.Unstructured)
	got, _, _ := unstructured.NestedFieldNoCopy(object.Object, "status", "group")
	if object.GetAPIVersion() != poolGroup+"/"+p.version || got != group {
		fail("pools: the informer of %s holds %v", p.version, object.Object)
	}
}
